package site_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/site"
)

// rootPages are the pages at the root of the repository, by the names that hooks.py gives them on the site.
var rootPages = []string{"changelog.md", "contributing.md", "index.md", "report-a-vulnerability.md"}

// TestNavigation checks that each page is in the navigation once, under a title, and that nothing else is.
func TestNavigation(t *testing.T) {
	pages := slices.Clone(rootPages)
	err := fs.WalkDir(os.DirFS("../../docs"), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../mkdocs.yml")
	if err != nil {
		t.Fatal(err)
	}
	var configuration struct {
		Nav   yaml.Node
		Extra struct{ Repository string }
	}
	if err := yaml.Unmarshal(text, &configuration); err != nil {
		t.Fatal(err)
	}
	if got := configuration.Extra.Repository; got != site.Repository {
		t.Errorf("mkdocs.yml has the repository %s, and the check has %s", got, site.Repository)
	}
	titles, named := entries(t, &configuration.Nav)
	slices.Sort(pages)
	slices.Sort(named)
	if diff := cmp.Diff(pages, named); diff != "" {
		t.Errorf("nav of mkdocs.yml names other pages than docs has (-docs +nav):\n%s", diff)
	}
	slices.Sort(titles)
	if once := slices.Compact(slices.Clone(titles)); len(once) != len(titles) {
		t.Errorf("nav of mkdocs.yml has a title twice: %q", titles)
	}
}

// entries returns the titles and pages of a list of the navigation and of the lists in it.
func entries(t *testing.T, list *yaml.Node) (titles, pages []string) {
	t.Helper()
	for _, entry := range list.Content {
		if entry.Kind != yaml.MappingNode || len(entry.Content) != 2 {
			t.Fatalf("mkdocs.yml:%d: an entry of nav is a title with a page or a list", entry.Line)
		}
		titles = append(titles, entry.Content[0].Value)
		if entry.Content[1].Kind == yaml.ScalarNode {
			pages = append(pages, entry.Content[1].Value)
			continue
		}
		innerTitles, innerPages := entries(t, entry.Content[1])
		titles, pages = append(titles, innerTitles...), append(pages, innerPages...)
	}
	return titles, pages
}
