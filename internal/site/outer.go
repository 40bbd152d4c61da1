package site

import (
	"io"
	"net/url"
	"slices"
	"strings"
)

// Outer are the addresses of other servers to which the pages link, each with the pages that do. Check looks at their form alone; package outer
// asks the servers. Places in the repository are left out, since Check finds them in the tree.
func (s Site) Outer() (map[string][]string, error) {
	pages, err := s.pages()
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for name, p := range pages {
		for _, l := range p.links {
			to, err := url.Parse(l.to)
			if err != nil || to.Scheme != "https" || l.fetched || l.to == Repository || strings.HasPrefix(l.to, Repository+"/") {
				continue
			}
			if !slices.Contains(found[l.to], name) {
				found[l.to] = append(found[l.to], name)
			}
		}
	}
	for to := range found {
		slices.Sort(found[to])
	}
	return found, nil
}

// Anchors are the places in a page that a link can lead to.
func Anchors(html io.Reader) (map[string]bool, error) {
	p, err := read(html)
	return p.anchors, err
}
