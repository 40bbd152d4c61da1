package page_test

import (
	"flag"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/awstest/pinned"
	"github.com/remuda-ci/remuda/internal/page"
	"github.com/remuda-ci/remuda/internal/page/signin"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

var update = flag.Bool("update", false, "write the pictures in docs")

var (
	actionTools  = pinned.Tools{Script: "scripts/action-tools", Files: []string{"action/package-lock.json"}}
	browserTools = pinned.Tools{Script: "scripts/browser-tools", Files: []string{"internal/page/browser/package-lock.json"}}
)

// pictures are those that the documents have: what is seen of a fleet of so many hosts, and where.
var pictures = map[string]map[int]string{
	"now-desk-light.png":              {3: "page-now-3-desk.png", 10_000: "page-now-10000-desk.png"},
	"now-phone-dark.png":              {3: "page-now-3-phone.png"},
	"now-phone-light.png":             {10_000: "page-now-10000-phone.png"},
	"hosts-desk-light.png":            {3: "page-hosts-3-desk.png", 10_000: "page-hosts-10000-desk.png"},
	"hosts-phone-dark.png":            {3: "page-hosts-3-phone.png"},
	"hosts-phone-light.png":           {10_000: "page-hosts-10000-phone.png"},
	"history-span-h-desk-light.png":   {10_000: "page-history-10000.png"},
	"run-acme-shop-desk-light.png":    {3: "page-run-3.png"},
	"cost-by-workflow-desk-light.png": {3: "page-cost-3.png"},
	"plan-desk-light.png":             {3: "page-plan-3.png"},
}

// TestInABrowser looks at the page in Chromium: the browser has nothing to complain about, axe-core finds no barrier, nothing is wider than a phone,
// the page works without JavaScript, with its slider and its updates, and the pictures in docs are of it.
func TestInABrowser(t *testing.T) {
	racepass.CoveredBy(t, "TestPages")
	node, modules := install(t, actionTools), install(t, browserTools)
	for hosts, what := range map[int]string{3: "all", 10_000: "looks"} {
		w := newWorld(t, func(*page.Options) {})
		w.fill(hosts)
		w.waits("test (shard 2 of 3)")
		shapes := w.shapes(hosts)
		s := httptest.NewServer(w.handler)
		t.Cleanup(s.Close)
		dir := look(t, node, modules, s.URL, what, paths...)
		keepPictures(t, modules.Root, dir, shapes)
	}
}

// TestSignInInABrowser looks at the page to sign in, and at the one that a person sees who has signed in at a provider, with who that is.
func TestSignInInABrowser(t *testing.T) {
	racepass.CoveredBy(t, "TestSignInAtAProvider")
	node, modules := install(t, actionTools), install(t, browserTools)
	p := newProvider(t, func(*signin.Options) {}, func(o *page.Options) { o.Tokens = tokens(token) })
	p.world.fill(9)
	look(t, node, modules, p.page, "looks", "login", "oidc/begin?to=%2Fui%2F")
}

// look has Chromium look at pages, and returns the directory with the pictures of them.
func look(t *testing.T, node, modules pinned.Installed, address, what string, paths ...string) (pictures string) {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{filepath.Join(modules.Root, "internal/page/browser/look.mjs"), modules.Dir, address + page.Path, dir, what}, paths...)
	cmd := exec.CommandContext(t.Context(), filepath.Join(node.Dir, "bin", "node"), args...)
	out, err := cmd.CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "looked at all pages" {
		t.Errorf("%s: %v\n%s", address, err, got)
	}
	return dir
}

func install(t *testing.T, tools pinned.Tools) pinned.Installed {
	t.Helper()
	got, err := tools.Install()
	if err != nil {
		t.Fatal(err)
	}
	return got
}
