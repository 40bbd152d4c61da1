package page

import (
	"fmt"
	"net/http"
	"strconv"
)

// section is the part of a long list that one page shows.
type section struct {
	from, to, total int
	// previous and next lead to the sections beside it; empty: there is none.
	previous, next string
}

// sectionOf is the section that a call asks for by its number, of a list that is divided before each of starts, from 0 on. A number
// beyond the list is the last section, since lists become shorter.
func sectionOf(r *http.Request, starts []int, total int) section {
	n, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil || n < 1 {
		n = 1
	}
	if len(starts) == 0 {
		return section{}
	}
	n = min(n, len(starts))
	s := section{from: starts[n-1], to: total, total: total}
	if n > 1 {
		s.previous = numbered(r, n-1)
	}
	if n < len(starts) {
		s.to, s.next = starts[n], numbered(r, n+1)
	}
	return s
}

// every divides a list into sections of a size.
func every(size, total int) (starts []int) {
	for at := 0; at < total; at += size {
		starts = append(starts, at)
	}
	return starts
}

// numbered is the address of a section, with the same filters.
func numbered(r *http.Request, n int) string {
	query := r.URL.Query()
	query.Set("page", strconv.Itoa(n))
	return r.URL.Path + "?" + query.Encode()
}

// of says which rows a section has; nothing of a list that fits on one page.
func (s section) of(what string) []string {
	if s.to-s.from == s.total {
		return nil
	}
	return []string{fmt.Sprintf("%s %d to %d of %d.", what, s.from+1, s.to, s.total)}
}

// divide shows that the tables of a view are a section of a longer list.
func (v *view) divide(s section, what string) {
	v.Text = append(v.Text, s.of(what)...)
	v.Previous, v.Next = s.previous, s.next
}
