package site_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/site"
)

// TestOuter: what other servers are asked for is what a reader follows there.
func TestOuter(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := site.Site{Files: fstest.MapFS{
		"b.html": file(`<a href="https://a.example/x#y"><a href="https://a.example/x#y"><a href="a.html"><a href="mailto:a@a.example">`),
		"a.html": file(`<a href="https://a.example/x#y"><a href="` + site.Repository + `/blob/main/go.mod"><script src="https://b.example/s.js"></script>`),
	}}.Outer()
	want := map[string][]string{"https://a.example/x#y": {"a.html", "b.html"}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	if _, err := (site.Site{Files: fstest.MapFS{}}).Outer(); err == nil {
		t.Error("an empty directory has links")
	}
}
