package page

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/remuda-ci/remuda/internal/cli/table"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// view is what a page shows, from above to below. What is empty is left out.
type view struct {
	Title string
	// Text are paragraphs.
	Text []string
	// Login has ways to sign in, and no menu: a form for a token, and a link to the issuer. To is the page to show after the sign-in.
	Login      bool
	TokenForm  bool
	Issuer, To string
	// SignedIn says how the browser is signed in: "as alice@acme.com".
	SignedIn string
	// Filters are fields of a form that asks for the same page again.
	Filters []filter
	Chart   *chart
	Tables  []htmlTable
	// Previous and Next lead to the pages beside this one.
	Previous, Next string
	// Earlier and Later lead to what was before and after the time of this page.
	Earlier, Later string
	// Live has the page updated while it is looked at.
	Live bool

	// What follows is filled in.
	Path, Version, Now string
}

// filter is a field of a form; with Choices, one of those.
type filter struct {
	Name, Label, Value string
	Choices            []string
}

// htmlTable is a table whose cells may lead somewhere.
type htmlTable struct {
	Title string
	Head  []string
	Rows  [][]htmlCell
	// Nothing is said in place of no rows.
	Nothing string
	// More leads to the rows that are not here; nil: there are none.
	More *htmlCell
}

type htmlCell struct {
	Text, Class, Link string
	// Head is that of its column.
	Head string
}

// sentence is from how many characters on the text of a cell is broken into lines.
const sentence = 40

// classes are how styles are called in the style sheet.
var classes = map[table.Style]string{table.Good: "good", table.Warn: "warn", table.Bad: "bad", table.Faint: "faint", table.Strong: "strong"}

// tableOf makes a table of one that remuda shows. Hosts and runs lead to their pages.
func tableOf(title string, t table.Table, nothing string) htmlTable {
	h := htmlTable{Title: title, Head: t.Head, Nothing: nothing}
	at := map[string]int{}
	for i, head := range t.Head {
		at[head] = i
	}
	for _, row := range t.Rows {
		cells := make([]htmlCell, len(row))
		for i, cell := range row {
			cells[i] = htmlCell{Text: cell.Shown(), Class: classes[cell.Style], Head: t.Head[i]}
			switch {
			case cell.Text == "":
				cells[i].Class = "none"
			case utf8.RuneCountInString(cell.Text) > sentence:
				cells[i].Class = strings.TrimSpace(cells[i].Class + " text")
			}
		}
		if i, ok := at["HOST"]; ok {
			cells[i].Link = hostLink(row[i].Text)
		}
		run, hasRun := at["RUN"]
		repository, hasRepository := at["REPOSITORY"]
		if hasRun && hasRepository {
			cells[run].Link = runLink(row[repository].Text, row[run].Text)
		}
		h.Rows = append(h.Rows, cells)
	}
	return h
}

func hostLink(id string) string {
	if id == "" {
		return ""
	}
	return Path + "host/" + url.PathEscape(id)
}

// runLink leads to a run; "41 #2" is its second attempt. A slot of a job pool has no page.
func runLink(repository, run string) string {
	run, _, _ = strings.Cut(run, " ")
	owner, name, ok := strings.Cut(repository, "/")
	if !ok || run == "" || strings.Contains(run, ":") {
		return ""
	}
	return Path + "run/" + url.PathEscape(owner) + "/" + url.PathEscape(name) + "/" + url.PathEscape(run)
}

// answer writes a page, once it is whole.
func (p *page) answer(w http.ResponseWriter, code int, v view) {
	v.Path, v.Version, v.Now = Path, p.Version, p.Now().UTC().Format(time.RFC3339)
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, "page.html", v); err != nil {
		p.Log.Error("a page cannot be written", logkey.Error, err)
		http.Error(w, "The page cannot be written. The log of controld says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // the caller has left
}
