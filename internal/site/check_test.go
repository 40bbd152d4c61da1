package site_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/site"
)

// check checks a site whose page a.html has the content, beside others.
func check(t *testing.T, content string) site.Report {
	t.Helper()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	found, err := site.Site{
		Files: fstest.MapFS{
			"index.html":     file(`<h1 id="home">Home</h1>`),
			"a.html":         file(content),
			"iam/index.html": file(`<h2 id="keys">Keys</h2><a href="../a.html">a</a>`),
			"images/a.png":   file("png"),
		},
		Tree: fstest.MapFS{"deploy/a.yaml": file("a: b")},
	}.Check()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestGoodPages(t *testing.T) {
	for _, content := range []string{
		`<a href="index.html">`,
		`<a href="index.html#home">`,
		`<a href="/index.html">`,
		`<a href="/iam/index.html#keys">`,
		`<a href="">`,
		`<img src="images/a.png" srcset="images/a.png 1x, images/a.png 2x"><video poster="images/a.png">`,
		`<style>body {background: url("images/a.png")}</style><p style="background: url(images/a.png)">`,
		`<h2 id="here"></h2><a href="#here"><a href="a.html#here">`,
		`<a name="here"></a><a href="#here">`,
		`<img src="images/a.png"><img src="data:image/png;base64,AAAA">`,
		`<a href="images/a.png#anything">`,
		`<a href="https://docs.github.com/en/actions#runners">`,
		`<link rel="canonical" href="https://docs.example.com/a.html">`,
		`<a href="mailto:security@example.com">`,
		`<a href="` + site.Repository + `">`,
		`<a href="` + site.Repository + `/security/advisories/new">`,
		`<a href="` + site.Repository + `/blob/main/deploy/a.yaml#L3">`,
		`<a href="` + site.Repository + `/tree/main/deploy">`,
		`<a href="` + site.Repository + `/tree/main/deploy/">`,
		`<a href="` + site.Repository + `/tree/main">`,
		`<a href="` + site.Repository + `/blob/main/deploy/a.yaml?plain=1#L3">`,
		"<p>A sentence with 3 - 2\n2. or 3 hosts and <code>| - #</code></p>",
		"<p><code>a](b</code></p><pre>- a\n| b |</pre>",
	} {
		if got := check(t, content); len(got.Problems) > 0 {
			t.Errorf("%s: %q", content, got.Problems)
		}
	}
}

func TestProblems(t *testing.T) {
	for content, want := range map[string]string{
		`<a href="b.html">`:             "b.html: the site has no such file",
		`<a href="images">`:             "images: it leads to a directory, and a site that is opened as files has no page there: write index.html",
		`<a href="../index.html">`:      "../index.html: the site has no such file",
		`<img src="images/b.png">`:      "images/b.png: the site has no such file",
		`<a href="index.html#hom">`:     "index.html#hom: the page has no such place",
		`<a href="iam/index.html#key">`: "iam/index.html#key: the page has no such place",
		`<a href="iam/">`:               "iam/: it leads to a directory, and a site that is opened as files has no page there: write index.html",
		`<a href=".">`:                  ".: it leads to a directory, and a site that is opened as files has no page there: write index.html",
		`<img srcset="images/a.png, https://a.example/b.png 2x">`:   "https://a.example/b.png: it comes from another server, and the site needs none",
		`<video poster="https://a.example/b.png"></video>`:          "https://a.example/b.png: it comes from another server, and the site needs none",
		`<object data="https://a.example/b.svg"></object>`:          "https://a.example/b.svg: it comes from another server, and the site needs none",
		`<p style="background: url(https://a.example/b.png)">`:      "https://a.example/b.png: it comes from another server, and the site needs none",
		`<style>@import "https://a.example/b.css";</style>`:         "https://a.example/b.css: it comes from another server, and the site needs none",
		`<a href="` + site.Repository + `/blob/old/deploy/a.yaml">`: site.Repository + "/blob/old/deploy/a.yaml: it is not on the branch main",
		`<a href="#here">`:                                           "#here: the page has no such place",
		`<a href="https://%zz">`:                                     "https://%zz: it is no address",
		`<a href="http://docs.github.com/">`:                         "http://docs.github.com/: it is not https",
		`<a href="ftp://docs.github.com/">`:                          "ftp://docs.github.com/: it is not https",
		`<a href="https://HOST/PATH">`:                               "https://HOST/PATH: the host has no dot",
		`<a href="http://localhost:7080/ui/">`:                       "http://localhost:7080/ui/: it leads to a machine of the reader: write it as code",
		`<a href="https://127.0.0.1:7443">`:                          "https://127.0.0.1:7443: it leads to a machine of the reader: write it as code",
		`<script src="https://unpkg.com/mermaid.js"></script>`:       "https://unpkg.com/mermaid.js: it comes from another server, and the site needs none",
		`<link rel="stylesheet" href="//fonts.googleapis.com/css">`:  "//fonts.googleapis.com/css: it comes from another server, and the site needs none",
		`<img src="https://img.shields.io/a.svg">`:                   "https://img.shields.io/a.svg: it comes from another server, and the site needs none",
		`<a href="` + site.Repository + `/blob/main/deploy/b.yaml">`: site.Repository + "/blob/main/deploy/b.yaml: the repository has no such file",
		`<a href="` + site.Repository + `/blob/main/deploy">`:        site.Repository + "/blob/main/deploy: GitHub shows files under blob and directories under tree",
		`<a href="` + site.Repository + `/tree/main/deploy/a.yaml">`: site.Repository + "/tree/main/deploy/a.yaml: GitHub shows files under blob and directories under tree",
		"<p>Three things:\n- one</p>":                                `"- one" is shown as text: leave an empty line before it in the Markdown`,
		"<p>4. GitHub sends</p>":                                     `"4. GitHub sends" is shown as text: leave an empty line before it in the Markdown`,
		"<p>Rows:\n| <em>a</em> | b |</p>":                           `"| a | b |" is shown as text: leave an empty line before it in the Markdown`,
		"<p>See [a](b.md)</p>":                                       `"See [a](b.md)" is shown as text: leave an empty line before it in the Markdown`,
	} {
		if diff := cmp.Diff([]string{"a.html: " + want}, check(t, content).Problems); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", content, diff)
		}
	}
}

func TestCounts(t *testing.T) {
	got := check(t, `<a href="index.html"></a><img src="images/a.png">`)
	if want := (site.Report{Pages: 3, Links: 3}); !cmp.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestStyles: a style sheet of the site is looked at as a page is.
func TestStyles(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := site.Site{Files: fstest.MapFS{
		"index.html": file(""), "assets/a.css": file(`@font-face {src: url("fonts/a.woff2"), url(https://a.example/b.woff2)} p {background: url(data:image/png;base64,AAAA)}`),
		"assets/fonts/a.woff2": file("font"),
	}}.Check()
	want := []string{"assets/a.css: https://a.example/b.woff2: it comes from another server, and the site needs none"}
	if err != nil || !cmp.Equal(got.Problems, want) {
		t.Errorf("got %q, %v, want %q", got.Problems, err, want)
	}
}

func TestNoSite(t *testing.T) {
	_, err := site.Site{Files: fstest.MapFS{}}.Check()
	if err == nil || !strings.Contains(err.Error(), "make site") {
		t.Errorf("an empty directory: %v", err)
	}
}
