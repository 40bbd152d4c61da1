package site

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// page is what is checked of a page.
type page struct {
	anchors map[string]bool
	links   []link
	unread  []string // Markdown that is shown as it was written
}

// link leads from a page to another place.
type link struct {
	to string
	// fetched says that the browser gets it by itself: a script, a style, a picture.
	fetched bool
}

// fetching are the elements whose addresses a browser gets by itself.
var fetching = map[atom.Atom]bool{
	atom.Script: true, atom.Img: true, atom.Link: true, atom.Iframe: true, atom.Source: true, atom.Video: true, atom.Audio: true, atom.Embed: true,
}

// read parses a page.
func read(from io.Reader) (page, error) {
	root, err := html.Parse(from)
	if err != nil {
		return page{}, err
	}
	p := page{anchors: map[string]bool{}}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "id", a.Key == "name" && n.DataAtom == atom.A:
				p.anchors[a.Val] = true
			case a.Key == "href", a.Key == "src":
				p.links = append(p.links, link{to: a.Val, fetched: fetching[n.DataAtom] && !isCanonical(n)})
			}
		}
		if n.DataAtom == atom.P {
			p.unread = append(p.unread, unread(n)...)
		}
	}
	return p, nil
}

// isCanonical says whether an element only says where else the page is.
func isCanonical(n *html.Node) bool {
	return slices.Contains(n.Attr, html.Attribute{Key: "rel", Val: "canonical"})
}

// markdownLine is how a line begins that is no text in Markdown. A number begins an item only where a paragraph begins: elsewhere it may be one
// of a sentence.
var (
	markdownLine      = regexp.MustCompile("^([-*+|] |#{1,6} |```)")
	markdownParagraph = regexp.MustCompile(`^[0-9]+[.)] `)
)

// unread returns the lines of a paragraph that are Markdown.
func unread(paragraph *html.Node) []string {
	var lines []string
	for i, line := range strings.Split(text(paragraph), "\n") {
		line = strings.TrimSpace(line)
		if markdownLine.MatchString(line) || i == 0 && markdownParagraph.MatchString(line) || strings.Contains(line, "](") {
			lines = append(lines, line)
		}
	}
	return lines
}

// text is the text of an element, without the code in it.
func text(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	if n.DataAtom == atom.Code {
		return "code"
	}
	var b strings.Builder
	for c := range n.ChildNodes() {
		b.WriteString(text(c))
	}
	return b.String()
}
