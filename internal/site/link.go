package site

import (
	"io/fs"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// follow says what is wrong with a link of a page, or "".
func (s Site) follow(pages map[string]page, from string, l link) string {
	to, err := url.Parse(l.to)
	switch {
	case err != nil:
		return "it is no address"
	case to.Scheme == "mailto" || to.Scheme == "data":
		return ""
	case to.Scheme == "" && to.Host == "":
		return s.followInside(pages, from, to)
	case l.fetched:
		return "it comes from another server, and the site needs none"
	}
	if place, ours := strings.CutPrefix(l.to, Repository+"/"); ours {
		return s.followToFile(place)
	}
	return form(to)
}

// followInside follows a link to a file of the site, and to a place in it.
func (s Site) followInside(pages map[string]page, from string, to *url.URL) string {
	name := from
	if to.Path != "" {
		name = path.Join(path.Dir(from), to.Path)
		if strings.HasPrefix(to.Path, "/") {
			name = strings.TrimPrefix(path.Clean(to.Path), "/")
		}
	}
	switch info, err := fs.Stat(s.Files, cleaned(name)); {
	case err != nil:
		return "the site has no such file"
	case info.IsDir():
		return "it leads to a directory, and a site that is opened as files has no page there: write index.html"
	}
	p, isPage := pages[name]
	if isPage && to.Fragment != "" && !p.anchors[to.Fragment] {
		return "the page has no such place"
	}
	return ""
}

// branch is the one that links to the repository lead to.
const branch = "main"

// cleaned is a name as fs.FS takes it: the root of the site has one too.
func cleaned(name string) string {
	if name == "" {
		return "."
	}
	return name
}

// followToFile follows a link to a file or a directory of the repository, such as blob/main/go.mod. Other places there are GitHub's.
func (s Site) followToFile(place string) string {
	place, _, _ = strings.Cut(place, "#")
	place, _, _ = strings.Cut(place, "?")
	parts := strings.SplitN(place, "/", 3)
	switch {
	case parts[0] != "blob" && parts[0] != "tree":
		return ""
	case len(parts) < 2 || parts[1] != branch:
		return "it is not on the branch " + branch
	case len(parts) < 3:
		return "" // the whole tree
	}
	info, err := fs.Stat(s.Tree, cleaned(strings.TrimSuffix(parts[2], "/")))
	if err != nil {
		return "the repository has no such file"
	}
	if info.IsDir() != (parts[0] == "tree") {
		return "GitHub shows files under blob and directories under tree"
	}
	return ""
}

// form says what is wrong with the form of an address of another server. It asks none.
func form(to *url.URL) string {
	host := to.Hostname()
	_, err := netip.ParseAddr(host)
	switch {
	case host == "localhost" || err == nil:
		return "it leads to a machine of the reader: write it as code"
	case to.Scheme != "https":
		return "it is not https"
	case !strings.Contains(host, "."):
		return "the host has no dot"
	}
	return ""
}
