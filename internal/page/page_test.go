package page_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/html"
	"google.golang.org/grpc"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/page"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// paths are all pages.
var paths = []string{
	"", "runs", "hosts", "hosts?state=running&pool=default", "hosts?state=held", "waiting", "history", "history?span=24h", "cost", "cost?by=run&days=7", "cost?by=workflow", "services", "plan", "plan?at=02:00", "server",
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
	w.used("gone", now, 0, time.Hour, 0, meter.User{Repository: repository, Workflow: name, RunID: "1000"})
	w.used("gone-2", now, 70*time.Second, 25*time.Minute, 14*time.Minute, meter.User{Repository: "acme/docs", Workflow: "pages", RunID: "40"})
	w.used("gone-3", now, 65*time.Second, 47*time.Minute, 3*time.Minute, meter.User{Repository: "acme/tools", Workflow: "nightly", RunID: "43"})
	w.must(w.store.AddEvents(ctx, []lifecycle.Event{{At: now, InstanceID: instanceID(0), Repository: repository, RunID: "1000", Action: lifecycle.ActionClaim, Reason: "claimed for " + name}}))
}

// used is a host that a run had, as the costs know it.
func (w *world) used(host string, end time.Time, boot, busy, idle time.Duration, by meter.User) {
	w.t.Helper()
	released := end.Add(-idle)
	ready := released.Add(-busy)
	begin := meter.At(ready.Add(-boot))
	c := meter.Cycle{From: begin, Launched: true, ClaimedAt: begin, ReadyAt: meter.At(ready), ReleasedAt: meter.At(released), EndedAt: meter.At(end), User: by}
	w.must(w.store.CreateReading(context.Background(), meter.NewReading(host, meter.Host{Pool: "default", InstanceType: "c6i.large", UsageClass: "on-demand"}, c)))
}

const hostile = `<script>alert("x")</script> & 'y'`

func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*page.Options) {})
	w.fill(9)
	w.waits(hostile)
	for path, want := range map[string][]string{
		"":                      {"default", "jobs", "request_open", "budget_used_up", "used up", `href="/ui/run/acme/shop/1000"`, "The others are taken from the pool or launched until"},
		"runs":                  {"acme/shop", "1000", "1002"},
		"hosts":                 {instanceID(8), `href="/ui/host/` + instanceID(0) + `"`, "running"},
		"hosts?state=idle":      {instanceID(1)},
		"waiting":               {"limits.budgets allows repository acme/shop $1.00", "0 of 3 hosts are taken", "The others are taken from the pool or launched until", `data-head="NEXT"`, `data-head="LINE"`},
		"history?span=24h":      {`<rect class="claimed"`, `<rect class="idle"`, `id="slider"`, `class="claim"`},
		"cost?by=workflow":      {"1.00", "acme/shop", "total", "Budgets of ", "(calls of agents: dynamodb)", "CALLS"},
		"plan":                  {"terminate", "keep"},
		"services":              {"No service is configured."},
		"server":                {"Which controlds are alive is not known.", "Its configuration names none."},
		"host/" + instanceID(0): {"is running", "History"},
		"run/acme/shop/1000":    {"Request asked asked for 3", "History", `<rect class="waiting"`, "request asked", "job &lt;script&gt;", `key waiting`},
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

// counting counts the calls that read all hosts, or all that happened.
type counting struct {
	remudav1.FleetServiceClient
	hosts, events, pools, costs atomic.Int64
}

func (c *counting) ListInstances(ctx context.Context, req *remudav1.ListInstancesRequest, o ...grpc.CallOption) (*remudav1.ListInstancesResponse, error) {
	c.hosts.Add(1)
	return c.FleetServiceClient.ListInstances(ctx, req, o...)
}

func (c *counting) ListEvents(ctx context.Context, req *remudav1.ListEventsRequest, o ...grpc.CallOption) (*remudav1.ListEventsResponse, error) {
	c.events.Add(1)
	return c.FleetServiceClient.ListEvents(ctx, req, o...)
}

func (c *counting) ListPools(ctx context.Context, req *remudav1.ListPoolsRequest, o ...grpc.CallOption) (*remudav1.ListPoolsResponse, error) {
	c.pools.Add(1)
	return c.FleetServiceClient.ListPools(ctx, req, o...)
}

func (c *counting) GetCost(ctx context.Context, req *remudav1.GetCostRequest, o ...grpc.CallOption) (*remudav1.GetCostResponse, error) {
	c.costs.Add(1)
	return c.FleetServiceClient.GetCost(ctx, req, o...)
}

// calls are the numbers of calls since the last time.
func (c *counting) calls() [4]int64 {
	return [4]int64{c.hosts.Swap(0), c.events.Swap(0), c.pools.Swap(0), c.costs.Swap(0)}
}

// What reads all hosts is read once for the pages that need it, and then not again for ten seconds. Times are those of a benchmark, so this has
// what a look takes in calls and allocations.
func TestWorkOfALook(t *testing.T) {
	racepass.CoveredBy(t, "TestPages")
	now, c := time.Now(), &counting{}
	w := newWorld(t, func(o *page.Options) {
		c.FleetServiceClient, o.Fleet, o.Now = o.Fleet, c, func() time.Time { return now }
	})
	w.fill(3_000)
	for _, look := range []struct {
		path                        string
		hosts, events, pools, costs int64
		allocations                 float64
	}{
		{"", 0, 1, 1, 0, 6_000}, {"runs", 3, 0, 0, 0, 20_000}, {"history", 0, 1, 0, 0, 20_000}, {"history?page=2", 0, 0, 0, 0, 20_000}, {"history?span=24h", 0, 1, 0, 0, 40_000},
		{"history?span=24h&page=5", 0, 0, 0, 0, 40_000}, {"hosts?state=held", 3, 0, 0, 0, 20_000}, {"hosts", 1, 0, 0, 0, 40_000}, {"cost", 0, 0, 0, 1, 5_000}, {"plan", 0, 0, 0, 0, 40_000},
	} {
		w.see(look.path)
		if got, want := c.calls(), [4]int64{look.hosts, look.events, look.pools, look.costs}; got != want {
			t.Errorf("/%s calls for hosts, events, pools and costs %v times, want %v", look.path, got, want)
		}
		if got := testing.AllocsPerRun(1, func() { w.see(look.path) }); got > look.allocations {
			t.Errorf("/%s takes %.0f allocations", look.path, got)
		}
		c.calls()
	}
}

// Each page is small, however large the fleet is, and all hosts and runs are on one.
func TestLargeFleet(t *testing.T) {
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
	for path, want := range map[string]struct{ link, first string }{
		"hosts": {"host/", ""}, "history": {"host/", "hosts changed, and come first, the last one at the top."}, "history?span=24h": {"host/", "The history reaches back to "}, "runs": {"run/", "Runs 1 to 100 of 3334."},
	} {
		if body := w.see(path).Body.String(); !strings.Contains(body, want.first) {
			t.Errorf("%s does not say %q", path, want.first)
		}
		all := map[string]int{"host/": 10_000, "run/": 3334}[want.link]
		if got := w.walk(path, want.link); len(got) < all {
			t.Errorf("the pages from %s on lead to %d of %d", path, len(got), all)
		}
	}
}

// The hosts that did not change follow those that did, and each host is on one page.
func TestHostsThatDidNotChange(t *testing.T) {
	racepass.CoveredBy(t, "TestPages")
	w := newWorld(t, func(*page.Options) {})
	w.ago = 35 * time.Minute // hosts run for 25 minutes or more then
	w.fill(1_500)
	for path, want := range map[string]string{
		"history": "hosts changed, and come first, the last one at the top. 375 did not.", "history?span=1h&unchanged=": "The page before",
	} {
		body := w.see(path).Body.String()
		if !strings.Contains(body, want) || !strings.Contains(body, `id="slider"`) {
			t.Errorf("%s lacks %q, or the slider", path, want)
		}
	}
	same := w.walk("history?span=1h&unchanged=", "host/")
	if len(same) != 375 || !same[instanceID(0)] || same[instanceID(1)] {
		t.Errorf("%d hosts did not change", len(same))
	}
	if got := w.walk("history", "host/"); len(got) < 1_500 {
		t.Errorf("the pages lead to %d hosts", len(got))
	}
	w = newWorld(t, func(*page.Options) {})
	w.ago = 3 * time.Hour
	w.fill(5)
	if body := w.see("history").Body.String(); !strings.Contains(body, "0 hosts changed") || !strings.Contains(body, instanceID(0)) {
		t.Error("where no host changed, the first page does not have those that did not")
	}
}

// A host that changes while its history is kept is not drawn as if it had always been as it is now.
func TestAHostThatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newWorld(t, func(o *page.Options) { o.Now = func() time.Time { return now } })
	w.ago = 3 * time.Hour
	w.fill(5)
	const path = "history?span=1h&unchanged="
	if !strings.Contains(w.see(path).Body.String(), instanceID(0)) {
		t.Fatal("the host is not among those that did not change")
	}
	r, err := w.store.Instance(t.Context(), instanceID(0))
	w.must(err)
	r.UpdatedAt = now.Add(time.Second)
	_, err = w.store.UpdateInstance(t.Context(), r)
	w.must(err)
	if strings.Contains(w.see(path).Body.String(), instanceID(0)) {
		t.Error("the host is still drawn")
	}
}

// Hosts of a pool that the configuration has no longer count as all others do.
func TestHostsOfARemovedPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*page.Options) {})
	w.ago = 3 * time.Hour
	w.fill(5)
	r, err := w.store.Instance(t.Context(), instanceID(0))
	w.must(err)
	r.Pool = "was"
	_, err = w.store.UpdateInstance(t.Context(), r)
	w.must(err)
	if body := w.see("history").Body.String(); !strings.Contains(body, "5 did not") {
		t.Error("the history leaves the host out")
	}
	if body := w.see("").Body.String(); !strings.Contains(body, "was") || !strings.Contains(body, "removed") {
		t.Error("the pools leave out the one that was removed")
	}
}

var earlierPage = regexp.MustCompile(`<a href="/ui/([^"]+)">Earlier</a>`)

// A day of more events than a page reads is gone through by Earlier, and by Later back again.
func TestWholeDayOfALargeFleet(t *testing.T) {
	racepass.CoveredBy(t, "TestPages")
	w := newWorld(t, func(*page.Options) {})
	const hosts = 15_000
	begin := time.Now().Add(-23*time.Hour - 50*time.Minute)
	events := make([]lifecycle.Event, 0, 2*hosts)
	for n := range hosts {
		at := begin.Add(time.Duration(n/150) * 14 * time.Minute) // many events are of one time
		one := lifecycle.Event{At: at, InstanceID: instanceID(n), Action: lifecycle.ActionLaunch, To: "created", Reason: "launched"}
		two := one
		two.Action, two.From, two.To = lifecycle.ActionTerminate, "created", "terminated"
		two.At = at.Add(time.Minute)
		events = append(events, one, two)
	}
	slices.SortStableFunc(events, func(a, b lifecycle.Event) int { return a.At.Compare(b.At) })
	for some := range slices.Chunk(events, 500) {
		w.must(w.store.AddEvents(t.Context(), some))
	}
	found, pages := map[string]bool{}, []string{"history?span=24h"}
	for {
		path := pages[len(pages)-1]
		maps.Copy(found, w.walk(path, "host/"))
		body := w.see(path).Body.String()
		if past := len(pages) > 1; past != strings.Contains(body, "Hosts that did not change are not counted.") || strings.Contains(body, "data-live") {
			t.Errorf("%s is not that of its time", path)
		}
		if len(pages) > 1 && !strings.Contains(html.UnescapeString(body), `<a href="/ui/`+pages[len(pages)-2]+`">Later</a>`) {
			t.Errorf("%s does not lead back to %s", path, pages[len(pages)-2])
		}
		earlier := earlierPage.FindStringSubmatch(body)
		if earlier == nil || len(pages) == 10 {
			break
		}
		pages = append(pages, html.UnescapeString(earlier[1]))
	}
	if len(found) != hosts || len(pages) < 3 || len(pages) > 4 {
		t.Errorf("%d pages of the day have %d hosts of %d", len(pages), len(found), hosts)
	}
	if got := w.see("history?until=yesterday"); got.Code != http.StatusBadRequest {
		t.Errorf("an end that is no time: status %d", got.Code)
	}
}

// What few hosts pass is searched for through all, and a page is small where many do.
func TestManyHostsPass(t *testing.T) {
	racepass.CoveredBy(t, "TestMarkedHosts")
	w := newWorld(t, func(*page.Options) {})
	w.fill(2_500)
	for n := range 2_500 {
		if n > 1_100 && n < 1_350 || n == 2_400 {
			r, err := w.store.Instance(t.Context(), instanceID(n))
			w.must(err)
			r.Hold = time.Now().Add(time.Hour)
			_, err = w.store.UpdateInstance(t.Context(), r)
			w.must(err)
		}
	}
	if got := w.walk("hosts?state=held", "host/"); len(got) != 250 || !got[instanceID(2_400)] || got[instanceID(0)] {
		t.Errorf("%d hosts are held", len(got))
	}
	if got := w.walk("hosts?repository=acme", "host/"); len(got) != 1_875 {
		t.Errorf("%d hosts serve acme", len(got))
	}
}

var nextPage = regexp.MustCompile(`<a href="/ui/([^"]+)">The next page</a>`)

// walk goes from a page to the next ones until the last, and returns what they lead to below a path.
func (w *world) walk(path, below string) map[string]bool {
	w.t.Helper()
	found := map[string]bool{}
	links := regexp.MustCompile(`href="/ui/` + below + `([^"]+)"`)
	for pages := 0; pages < 1000; pages++ {
		got := w.see(path)
		body := got.Body.String()
		if got.Code != http.StatusOK || len(body) > 200<<10 {
			w.t.Errorf("%s: %d KiB, status %d", path, len(body)>>10, got.Code)
		}
		for _, link := range links.FindAllStringSubmatch(body, -1) {
			found[link[1]] = true
		}
		next := nextPage.FindStringSubmatch(body)
		if next == nil {
			return found
		}
		path = html.UnescapeString(next[1])
	}
	w.t.Errorf("%s has no last page", path)
	return found
}

// Of very many that wait those are shown that wait longest, page by page.
func TestManyWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*page.Options) {})
	now := time.Now()
	for n := range 1200 {
		w.must(w.store.CreateRequest(t.Context(), lifecycle.Request{
			Repository: repository, RunID: fmt.Sprint(n), RequestID: fmt.Sprint("asked-", n), Kind: lifecycle.RequestByCaller, Spec: lifecycle.Spec{Pool: "default", Count: 3, MinimumCount: 1},
			CreatedAt: now.Add(-time.Duration(n) * time.Second), Deadline: now.Add(time.Minute), DueAt: now, Version: 1,
		}))
	}
	if body := w.see("").Body.String(); !strings.Contains(body, `<a href="/ui/waiting">All that waits</a>`) {
		t.Error("the first page does not lead to all that waits")
	}
	body := w.see("waiting?page=10").Body.String()
	for _, want := range []string{"More wait than these 1000, which wait longest.", "Rows 901 to 1000 of 1000.", "The page before"} {
		if !strings.Contains(body, want) {
			t.Errorf("the last page lacks %q", want)
		}
	}
	if got := w.walk("waiting", "run/"); len(got) != 1000 || !got["acme/shop/1199"] {
		t.Errorf("%d runs are shown", len(got))
	}
}

// The chart of a run with very many requests says which part of them it has.
func TestALargeRunsChart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*page.Options) {})
	now := time.Now()
	for n := range 150 {
		w.must(w.store.CreateRequest(t.Context(), lifecycle.Request{
			Repository: repository, RunID: "77", RequestID: fmt.Sprintf("%08d", n), Kind: lifecycle.RequestByCaller, Spec: lifecycle.Spec{Pool: "default", Count: 1, MinimumCount: 1},
			CreatedAt: now.Add(-time.Minute), Deadline: now.Add(time.Minute), DueAt: now, Version: 1,
		}))
	}
	if body := w.see("run/" + repository + "/77").Body.String(); !strings.Contains(body, "The chart shows the first 100 of 150 requests, jobs and hosts.") {
		t.Error("the page does not say that its chart leaves requests out")
	}
}

// Hosts with a mark can be found, on pages that are small however many there are.
func TestMarkedHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*page.Options) {})
	w.fill(4)
	for id, mark := range map[string]func(*lifecycle.Record){
		instanceID(0): func(r *lifecycle.Record) { r.Hold = time.Now().Add(time.Hour) }, instanceID(2): func(r *lifecycle.Record) { r.Retiring = true },
	} {
		r, err := w.store.Instance(t.Context(), id)
		w.must(err)
		mark(&r)
		_, err = w.store.UpdateInstance(t.Context(), r)
		w.must(err)
	}
	for query, want := range map[string]string{
		"state=held": instanceID(0), "state=retiring": instanceID(2), "state=held&pool=default": instanceID(0), "state=held&repository=acme": instanceID(0),
		"state=held&pool=other": "", "state=retiring&repository=acme/other": "",
	} {
		got, has := w.walk("hosts?"+query, "host/"), 0
		if want != "" {
			has = 1
		}
		if len(got) != has || has == 1 && !got[want] {
			t.Errorf("%s shows %v, want %q", query, got, want)
		}
	}
}
