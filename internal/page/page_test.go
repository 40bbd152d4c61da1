package page_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/page"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// paths are all pages.
var paths = []string{
	"", "runs", "hosts", "hosts?state=running&pool=default", "waiting", "history", "history?span=24h", "cost", "cost?by=run&days=7", "services", "plan", "plan?at=02:00", "server",
	"host/" + instanceID(0), "run/acme/shop/1000",
}

// waits are a request and a job of a name, and a run that is over.
func (w *world) waits(name string) {
	ctx, now := context.Background(), time.Now()
	w.must(w.store.CreateRequest(ctx, lifecycle.Request{
		Repository: repository, RunID: "1000", RequestID: "asked", Kind: lifecycle.RequestByCaller, Spec: lifecycle.Spec{Pool: "default", Count: 3, MinimumCount: 1},
		CreatedAt: now.Add(-time.Minute), Deadline: now.Add(time.Minute), DueAt: now, Version: 1,
	}))
	w.must(w.store.CreateJob(ctx, lifecycle.Job{
		ID: 7, Name: name, Repository: repository, RunID: "1000", Pool: "jobs", Scope: repository, State: lifecycle.JobWaiting, QueuedAt: now, Version: 1,
	}))
	begin := meter.At(now.Add(-time.Hour))
	c := meter.Cycle{From: begin, Launched: true, ClaimedAt: begin, ReadyAt: begin, ReleasedAt: meter.At(now), EndedAt: meter.At(now), User: meter.User{Repository: repository, Workflow: name, RunID: "1000"}}
	w.must(w.store.CreateReading(ctx, meter.NewReading("gone", meter.Host{Pool: "default", InstanceType: "c6i.large", UsageClass: "on-demand"}, c)))
	w.must(w.store.AddEvents(ctx, []lifecycle.Event{{At: now, InstanceID: instanceID(0), Repository: repository, RunID: "1000", Action: lifecycle.ActionClaim, Reason: "claimed for " + name}}))
}

const hostile = `<script>alert("x")</script> & 'y'`

func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*page.Options) {})
	w.fill(9)
	w.waits(hostile)
	for path, want := range map[string][]string{
		"":                      {"default", "jobs", "request_open", "budget_used_up", "used up", `href="/ui/run/acme/shop/1000"`},
		"runs":                  {"acme/shop", "1000", "1002"},
		"hosts":                 {instanceID(8), `href="/ui/host/` + instanceID(0) + `"`, "running"},
		"hosts?state=idle":      {instanceID(1)},
		"waiting":               {"limits.budgets allows repository acme/shop $1.00", "0 of 3 hosts are taken"},
		"history?span=24h":      {`<rect class="claimed"`, `<rect class="idle"`, `id="slider"`, `class="claim"`},
		"cost?by=workflow":      {"1.00", "acme/shop", "total", "Budgets of ", "(calls of agents: dynamodb)", "CALLS"},
		"services":              {"No service is configured."},
		"server":                {"Which controlds are alive is not known.", "Its configuration names none."},
		"host/" + instanceID(0): {"is running", "History"},
		"run/acme/shop/1000":    {"Request asked asked for 3", "History"},
	} {
		got := w.see(path)
		body := got.Body.String()
		for _, part := range want {
			if !strings.Contains(body, part) {
				t.Errorf("%s (status %d) lacks %q", path, got.Code, part)
			}
		}
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "alert(\"x\")") {
			t.Errorf("%s runs what the author of a workflow wrote", path)
		}
		if strings.Contains(path, "state=idle") && strings.Contains(body, instanceID(0)) {
			t.Errorf("%s has a host in another state", path)
		}
		if policy := got.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'; script-src 'self'") {
			t.Errorf("%s has the policy %q", path, policy)
		}
	}
}

// Each page is sound HTML: one heading of the page, heads of tables that say so, fields with labels, and links that lead to pages.
func TestMarkup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*page.Options) {})
	w.fill(9)
	w.waits(hostile)
	links := map[string]bool{}
	for _, path := range append(paths, "no-such-page", "host/i-unknown") {
		doc, err := html.Parse(w.see(path).Body)
		if err != nil {
			t.Fatal(err)
		}
		count, ids, labels := map[string]int{}, map[string]bool{}, map[string]bool{}
		var fields []string
		for n := range doc.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			if n.Namespace == "" {
				count[n.Data]++
			}
			attribute := map[string]string{}
			for _, a := range n.Attr {
				attribute[a.Key] = a.Val
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
					t.Errorf("%s: <%s> has %s, which the policy forbids", path, n.Data, a.Key)
				}
			}
			if id := attribute["id"]; id != "" {
				if ids[id] {
					t.Errorf("%s: two elements have the id %s", path, id)
				}
				ids[id] = true
			}
			switch n.Data {
			case "a":
				links[attribute["href"]] = true
			case "th":
				if attribute["scope"] != "col" {
					t.Errorf("%s: a head of a table is of nothing", path)
				}
			case "label":
				labels[attribute["for"]] = true
			case "input", "select":
				fields = append(fields, attribute["id"])
			case "svg":
				if attribute["role"] != "img" || attribute["aria-label"] == "" {
					t.Errorf("%s: a chart says nothing to who does not see it", path)
				}
			}
		}
		if count["h1"] != 1 || count["main"] != 1 || count["title"] != 1 {
			t.Errorf("%s has %d h1, %d main and %d title", path, count["h1"], count["main"], count["title"])
		}
		for _, field := range fields {
			if !labels[field] {
				t.Errorf("%s: the field %q has no label", path, field)
			}
		}
	}
	for link := range links {
		path, own := strings.CutPrefix(link, page.Path)
		if !own || strings.Contains(link, "i-unknown") {
			if link != "#main" && !strings.Contains(link, "i-unknown") {
				t.Errorf("a link leads to %s", link)
			}
			continue
		}
		if got := w.see(path); got.Code != http.StatusOK {
			t.Errorf("a link leads to %s: status %d", link, got.Code)
		}
	}
	if len(links) < 20 {
		t.Errorf("there are %d links: %v", len(links), links)
	}
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*page.Options) {})
	for path, want := range map[string]int{
		"host/i-unknown": http.StatusNotFound, "run/acme/shop/99": http.StatusNotFound, "no-such-page": http.StatusNotFound, "waiting?pool=other": http.StatusNotFound,
		"hosts?pool=Default": http.StatusBadRequest, "hosts?after=x": http.StatusBadRequest, "cost?days=500&by=x": http.StatusOK, "history?span=1000h": http.StatusOK,
		"run/acme/shop/x%0Ay": http.StatusBadRequest, "static/": http.StatusNotFound, "static/page.css": http.StatusOK, "static/page.js": http.StatusOK,
	} {
		if got := w.see(path); got.Code != want {
			t.Errorf("%s: status %d, want %d", path, got.Code, want)
		}
	}
	c := here()
	c.method, c.path = "POST", "hosts"
	if got := w.call(c); got.Code == http.StatusOK {
		t.Errorf("a page takes a POST")
	}
}

// Each page is small, however large the fleet is.
func TestSizes(t *testing.T) {
	racepass.CoveredBy(t, "TestPages")
	w := newWorld(t, func(*page.Options) {})
	w.fill(10_000)
	w.waits(hostile)
	for _, path := range paths {
		got := w.see(path)
		if size := got.Body.Len(); size > 200<<10 || got.Code != http.StatusOK {
			t.Errorf("%s: %d KiB, status %d", path, size>>10, got.Code)
		}
	}
	next := regexp.MustCompile(`<a href="/ui/(hosts\?after=[^"]+)">The next page</a>`).FindStringSubmatch(w.see("hosts").Body.String())
	if next == nil || !strings.Contains(w.see(next[1]).Body.String(), "The next page") {
		t.Errorf("the first hosts lead to %v", next)
	}
}

func BenchmarkPages(b *testing.B) {
	w := newWorld(b, func(*page.Options) {})
	w.fill(10_000)
	b.Run("the first look", func(b *testing.B) {
		for b.Loop() {
			w.restart()
			w.call(here())
		}
	})
	for _, path := range paths {
		b.Run("/"+path, func(b *testing.B) {
			c := here()
			c.path = path
			for b.Loop() {
				w.call(c)
			}
		})
	}
}
