package outer

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Checker asks for addresses. Its zero value asks once for each, and never pauses.
type Checker struct {
	// Timeout bounds one request with its redirects; 0: only the context does.
	Timeout time.Duration
	// Pause is between two requests to one server.
	Pause time.Duration
	// Tries is how often an address is asked for that does not answer, answers with 429, or with 500 or more.
	Tries int
	// Sleep waits; tests do not.
	Sleep func(ctx context.Context, d time.Duration) error

	last string // the server that was asked last
}

// Report is what Check found: a sentence for each address, which names the pages that link to it.
type Report struct {
	Addresses int
	// Problems are links to mend.
	Problems []string
	// Notes are for a look by hand: a page has moved permanently, or the server does not let programs see it.
	Notes []string
}

// Check asks for each address once, whatever place in it the links lead to. links has the pages that link to an address.
func (c *Checker) Check(ctx context.Context, links map[string][]string) (Report, error) {
	var report Report
	for _, address := range addresses(links) {
		found, err := c.ask(ctx, address.whole)
		if err != nil {
			return report, err
		}
		report.Addresses++
		for _, link := range address.links {
			on := fmt.Sprintf("%s: %s: ", strings.Join(links[link], ", "), link)
			switch wrong := found.problem(link); {
			case wrong != "":
				report.Problems = append(report.Problems, on+wrong)
			case found.note != "":
				report.Notes = append(report.Notes, on+found.note)
			}
		}
	}
	return report, nil
}

// address is a page of another server with the links to it.
type address struct {
	whole string // without a place in it
	links []string
}

// addresses are in the order of their servers.
func addresses(links map[string][]string) (all []address) {
	for _, link := range slices.Sorted(maps.Keys(links)) {
		whole, _, _ := strings.Cut(link, "#")
		if n := len(all); n > 0 && all[n-1].whole == whole {
			all[n-1].links = append(all[n-1].links, link)
			continue
		}
		all = append(all, address{whole, []string{link}})
	}
	return all
}

// found is what came of an address.
type found struct {
	wrong string // why there is nothing; empty: it is there
	note  string
	// anchors are the places of the page; nil: it is no HTML, or not all of it was read.
	anchors map[string]bool
}

// problem says what is wrong with a link to the address, or "".
func (f found) problem(link string) string {
	to, err := url.Parse(link)
	switch {
	case f.wrong != "":
		return f.wrong
	case err != nil || to.Fragment == "" || f.anchors == nil || f.note != "":
		return ""
	case f.anchors[to.Fragment] || f.anchors["user-content-"+to.Fragment]: // GitHub's pages write the latter
		return ""
	case to.Host == "github.com" && lineOfFile(to.Fragment): // scripts make these places
		return ""
	}
	return "the page has no such place"
}

// lineOfFile reports whether a place is a line of a file on GitHub, such as L7 or L7-L9.
func lineOfFile(fragment string) bool {
	return strings.HasPrefix(fragment, "L") && strings.Trim(fragment, "L0123456789-") == ""
}
