package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var _ = add(group{name: "indexes", underRace: 3, tests: []suiteTest{
	{"by run", testByRun},
	{"by pool", testByPool},
	{"by due", instances.byDue},
	{"requests by due", requests.byDue},
	{"the filter of a listing", testFilter},
}})

type (
	recordPage = lifecycle.Page[lifecycle.Record]
	jobPage    = lifecycle.Page[lifecycle.Job]
	reportPage = lifecycle.Page[lifecycle.Report]
	eventPage  = lifecycle.Page[lifecycle.Event]
)

// listed are the keys of a whole listing, in its order.
func listed(t *testing.T, list func(lifecycle.PageOf) (recordPage, error)) []string {
	t.Helper()
	return keysOf(all(t, 2, list))
}

func testByRun(t *testing.T, w world) {
	for key, run := range map[string]string{"c": "1", "a": "1", "b": "11", "d": "", "e": "1"} {
		r := pooledRecord(key)
		r.RunID = run
		instances.put(t, w, r)
	}
	ofRun := func(run string) func(lifecycle.PageOf) (recordPage, error) {
		return func(of lifecycle.PageOf) (recordPage, error) { return w.Store.InstancesOfRun(t.Context(), run, of) }
	}
	equal(t, "run 1", []string{"a", "c", "e"}, listed(t, ofRun("1")))
	equal(t, "run 11", []string{"b"}, listed(t, ofRun("11")))
	equal(t, "run unheard of", []string(nil), listed(t, ofRun("2")))
	equal(t, "no run", []string(nil), listed(t, ofRun("")))

	instances.change(t, w, func(r *lifecycle.Record) { r.RunID = "" }, "c")
	equal(t, "run 1 after c was released", []string{"a", "e"}, listed(t, ofRun("1")))
	claim := claimOf("c")
	claim.RunID = "1"
	must(w.Store.ClaimInstance(t.Context(), claim))(t)
	equal(t, "run 1 after c was claimed for it", []string{"a", "c", "e"}, listed(t, ofRun("1")))
}

func testByPool(t *testing.T, w world) {
	add := func(key string, seconds int, change func(*lifecycle.Record)) {
		r := pooledRecord(key)
		r.PooledAt = start.Add(time.Duration(seconds) * time.Second)
		change(&r)
		instances.put(t, w, r)
	}
	as := func(*lifecycle.Record) {}
	add("d", 1, as)
	add("b", 2, as)
	add("a", 3, as)
	add("c", 2, as)
	add("spot", 0, func(r *lifecycle.Record) { r.UsageClass = lifecycle.UsageSpot })
	add("small", 0, func(r *lifecycle.Record) { r.ResourceClass = "small" })
	add("build", 0, func(r *lifecycle.Record) { r.Pool = "build" })
	add("fresh", 0, func(r *lifecycle.Record) { r.TrustKey, r.Uses = "", 0 })
	add("fresh build", 0, func(r *lifecycle.Record) { r.Pool, r.TrustKey, r.Uses = "build", "", 0 })
	add("stranger", 0, func(r *lifecycle.Record) { r.TrustKey = "acme/other" })
	add("releasing", 0, func(r *lifecycle.Record) { r.PooledAt = time.Time{} })

	pooled := func(class string, usage lifecycle.UsageClass, trustKey string) []string {
		t.Helper()
		return w.pooled(t, "default", class, usage, trustKey)
	}
	equal(t, "the longest pooled first", []string{"d", "b", "c", "a"}, pooled("large", lifecycle.UsageOnDemand, repository))
	equal(t, "spot", []string{"spot"}, pooled("large", lifecycle.UsageSpot, repository))
	newest := func(limit int) []string {
		t.Helper()
		q := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}
		keys := keysOf(must(w.Store.NewestPooled(t.Context(), "default", q, repository, limit))(t))
		equal(t, "as it was a moment ago", keys, keysOf(must(w.Store.ClaimablePooled(t.Context(), "default", q, repository, limit))(t)))
		return keys
	}
	equal(t, "the newest one", []string{"a"}, newest(1))
	equal(t, "the newest two, of which one is as new as a third", []string{"a", "c"}, newest(2))
	equal(t, "the shortest pooled first", []string{"a", "c", "b", "d"}, newest(10))
	equal(t, "small", []string{"small"}, pooled("small", lifecycle.UsageOnDemand, repository))
	equal(t, "another trust key", []string{"stranger"}, pooled("large", lifecycle.UsageOnDemand, "acme/other"))
	equal(t, "fresh", []string{"fresh"}, pooled("large", lifecycle.UsageOnDemand, ""))
	equal(t, "another pool", []string{"build"}, w.pooled(t, "build", "large", lifecycle.UsageOnDemand, repository))
	equal(t, "fresh, of another pool", []string{"fresh build"}, w.pooled(t, "build", "large", lifecycle.UsageOnDemand, ""))
	equal(t, "a pool unheard of", []string(nil), w.pooled(t, "site", "large", lifecycle.UsageOnDemand, repository))
	equal(t, "a trust key unheard of", []string(nil), pooled("large", lifecycle.UsageOnDemand, "acme"))

	for _, key := range []string{"d", "stranger"} {
		instances.change(t, w, func(r *lifecycle.Record) { r.Stop = &lifecycle.Stop{At: start} }, key)
	}
	large := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}
	stopped := func(pool string, limit int) []string {
		t.Helper()
		return keysOf(must(w.Store.StoppedInstances(t.Context(), pool, large, limit))(t))
	}
	if got := stopped("default", 10); len(got) != 2 || !slices.Contains(got, "d") || !slices.Contains(got, "stranger") {
		t.Errorf("the stopped hosts are %v, want d and stranger", got)
	}
	equal(t, "of another pool", []string(nil), stopped("build", 10))
	equal(t, "without those that are stopped", []string{"a", "c", "b"}, newest(10))
	equal(t, "of another trust key, without those that are stopped", []string(nil), pooled("large", lifecycle.UsageOnDemand, "acme/other"))
	for _, key := range []string{"d", "stranger"} {
		instances.change(t, w, func(r *lifecycle.Record) { r.Stop = nil }, key)
	}

	must(w.Store.ClaimInstance(t.Context(), claimOf("b")))(t)
	instances.change(t, w, func(r *lifecycle.Record) { r.PooledAt = start.Add(time.Minute) }, "d")
	equal(t, "after b was claimed and d pooled again", []string{"c", "a", "d"}, pooled("large", lifecycle.UsageOnDemand, repository))
}

func testFilter(t *testing.T, w world) {
	add := func(key string, state lifecycle.State, run, class, pool, repository string) {
		r := pooledRecord(key)
		r.State, r.RunID, r.ResourceClass, r.Pool, r.Repository = state, run, class, pool, repository
		instances.put(t, w, r)
	}
	add("d", lifecycle.StateIdle, "", "large", "default", "")
	add("a", lifecycle.StateRunning, "1", "large", "default", "acme/app")
	add("c", lifecycle.StateRunning, "2", "small", "builds", "acme/lib")
	add("b", lifecycle.StateClaimed, "1", "small", "builds", "acme-2/app")
	instances.change(t, w, func(r *lifecycle.Record) { r.Hold = start.Add(time.Hour) }, "a")
	instances.change(t, w, func(r *lifecycle.Record) { r.Retiring = true }, "c")
	tests := []struct {
		name   string
		filter lifecycle.Filter
		want   []string
	}{
		{"nothing", lifecycle.Filter{}, []string{"a", "b", "c", "d"}},
		{"no states", lifecycle.Filter{States: []lifecycle.State{}}, []string{"a", "b", "c", "d"}},
		{"one state", lifecycle.Filter{States: []lifecycle.State{lifecycle.StateRunning}}, []string{"a", "c"}},
		{"two states", lifecycle.Filter{States: []lifecycle.State{lifecycle.StateIdle, lifecycle.StateClaimed}}, []string{"b", "d"}},
		{"a run", lifecycle.Filter{RunID: "1"}, []string{"a", "b"}},
		{"a class", lifecycle.Filter{ResourceClass: "small"}, []string{"b", "c"}},
		{"all three", lifecycle.Filter{States: []lifecycle.State{lifecycle.StateRunning}, RunID: "2", ResourceClass: "small"}, []string{"c"}},
		{"no host", lifecycle.Filter{RunID: "1", ResourceClass: "medium"}, nil},
		{"a pool", lifecycle.Filter{Pool: "builds"}, []string{"b", "c"}},
		{"a pool and a run", lifecycle.Filter{Pool: "builds", RunID: "1"}, []string{"b"}},
		{"a repository, in another case", lifecycle.Filter{Repository: "Acme/App"}, []string{"a"}},
		{"an owner", lifecycle.Filter{Repository: "acme"}, []string{"a", "c"}},
		{"a pool and an owner", lifecycle.Filter{Repository: "acme", Pool: "builds"}, []string{"c"}},
		{"held", lifecycle.Filter{HeldAt: start}, []string{"a"}},
		{"held, once the hold is over", lifecycle.Filter{HeldAt: start.Add(time.Hour)}, nil},
		{"retiring", lifecycle.Filter{Retiring: true}, []string{"c"}},
		{"held and retiring", lifecycle.Filter{HeldAt: start, Retiring: true}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			equal(t, "host keys", test.want, listed(t, func(of lifecycle.PageOf) (recordPage, error) {
				return w.Store.ListInstances(t.Context(), test.filter, of)
			}))
		})
	}
}
