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
	atom.Track: true, atom.Input: true,
}

// styled finds what a style has a browser get.
var styled = regexp.MustCompile(`(?:url\(\s*|@import\s+)["']?([^"')\s;]+)`)

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
			case a.Key == "poster", a.Key == "data" && n.DataAtom == atom.Object:
				p.links = append(p.links, link{to: a.Val, fetched: true})
			case a.Key == "srcset", a.Key == "imagesrcset":
				p.links = append(p.links, candidates(a.Val)...)
			case a.Key == "style":
				p.links = append(p.links, ofStyle(a.Val)...)
			}
		}
		if n.DataAtom == atom.Style {
			p.links = append(p.links, ofStyle(text(n))...)
		}
		if n.DataAtom == atom.P {
			p.unread = append(p.unread, unread(n)...)
		}
	}
	return p, nil
}

// candidates are the pictures of a srcset, such as "a.png 1x, b.png 2x". A browser gets one of them.
func candidates(srcset string) (links []link) {
	for one := range strings.SplitSeq(srcset, ",") {
		if fields := strings.Fields(one); len(fields) > 0 {
			links = append(links, link{to: fields[0], fetched: true})
		}
	}
	return links
}

// ofStyle are the addresses in a style sheet.
func ofStyle(css string) (links []link) {
	for _, m := range styled.FindAllStringSubmatch(css, -1) {
		links = append(links, link{to: m[1], fetched: true})
	}
	return links
}

// isCanonical reports whether an element is the address at which the page is published.
func isCanonical(n *html.Node) bool {
	return slices.Contains(n.Attr, html.Attribute{Key: "rel", Val: "canonical"})
}

// markdownLine is how a line of a list, a heading or a block of code begins in Markdown. A number begins an item only where a paragraph begins: elsewhere it may be one
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
