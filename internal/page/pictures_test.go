package page_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// drawnFrom is the file beside the pictures in docs that says of each what it was made of: a digest of the picture, and one of the page as shapeOf has it.
const drawnFrom = "docs/images/page.sums"

// stale is said of a picture that is not of the page as it is now.
const stale = "%s does not show the page as it is now: write the pictures with go test ./internal/page -run TestInABrowser -update, and look at them"

// numbers are times, dates, lengths of time, amounts and ids, which are others each time. A time of yesterday has a date before it, and 59m59s has one number less
// than 1h0m0s.
var numbers = regexp.MustCompile(number + `( ?` + number + `)*`)

const number = `[0-9][0-9a-f]*([-:.,/]?[0-9]+)*(ns|µs|ms|[dhmsTZ%])*`

// shapeOf is what a page shows, without what is another each time: its elements below which others, with their classes and attributes, and its texts,
// each once. How often they are there depends on the time of the day.
func shapeOf(t testing.TB, page []byte) []string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for n := range root.Descendants() {
		switch {
		case n.Type == html.TextNode:
			seen[n.Parent.Data+": "+strings.Join(strings.Fields(numbers.ReplaceAllString(n.Data, "#")), " ")] = true
		case n.Type == html.ElementNode:
			var attributes []string
			for _, a := range n.Attr {
				if a.Key == "class" {
					a.Key += "=" + a.Val
				}
				attributes = append(attributes, a.Key)
			}
			slices.Sort(attributes)
			seen[n.Parent.Data+" > "+n.Data+" "+strings.Join(attributes, " ")] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// pathOf is the path of the page that a picture shows: look.mjs names pictures by their paths.
func pathOf(t testing.TB, picture string) string {
	t.Helper()
	for _, path := range paths {
		name := strings.Trim(regexp.MustCompile(`[^a-z]+`).ReplaceAllString(path, "-"), "-")
		if name == "" {
			name = "now"
		}
		if strings.HasPrefix(picture, name+"-desk-") || strings.HasPrefix(picture, name+"-phone-") {
			return path
		}
	}
	t.Fatalf("no page has the picture %s", picture)
	return ""
}

// drawn is a picture in docs, and a digest of the shape of the page that it shows.
type drawn struct{ file, shape string }

// shapes are what the pictures of a fleet of so many hosts show, by the names that look.mjs gives them. It is asked right after the fleet is made: what
// waits does not wait for ever.
func (w *world) shapes(hosts int) map[string]drawn {
	w.t.Helper()
	all := map[string]drawn{}
	for name, of := range pictures {
		if of[hosts] == "" {
			continue
		}
		digest := sha256.New()
		for _, asset := range []string{"page.css", "page.js", "icon.svg"} {
			fmt.Fprintf(digest, "%s\n", w.see("static/"+asset).Body)
		}
		for _, line := range shapeOf(w.t, w.see(pathOf(w.t, name)).Body.Bytes()) {
			fmt.Fprintln(digest, line)
		}
		all[name] = drawn{of[hosts], fmt.Sprintf("%x", digest.Sum(nil))}
	}
	return all
}

// keepPictures takes the pictures of a directory into docs, with -update. Without it, it says which of those in docs are not of the page as it is now.
func keepPictures(t *testing.T, root, dir string, shapes map[string]drawn) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sums, err := os.ReadFile(filepath.Join(root, drawnFrom))
	must(err)
	lines := slices.Collect(strings.Lines(string(sums)))
	for name, of := range shapes {
		kept := filepath.Join(root, "docs/images", of.file)
		if *update {
			picture, err := os.ReadFile(filepath.Join(dir, name))
			must(err)
			must(os.WriteFile(kept, picture, 0o644))
		}
		picture, err := os.ReadFile(kept)
		must(err)
		line := fmt.Sprintf("%s %x %s\n", of.file, sha256.Sum256(picture), of.shape)
		if !*update && !slices.Contains(lines, line) {
			t.Errorf(stale, kept)
		}
		lines = append(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, of.file+" ") }), line)
	}
	if *update {
		slices.Sort(lines)
		must(os.WriteFile(filepath.Join(root, drawnFrom), []byte(strings.Join(lines, "")), 0o644))
	}
}
