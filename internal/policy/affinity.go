package policy

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// What a host costs or spares a run.
const (
	// CacheRate is how many bytes of caches spare a run a second: what it would download and build otherwise. In make demo-cache 349 MiB spare 37 s
	// (docs/caches.md, "What it saves").
	CacheRate = 8 << 20
	// registering is how much later a host begins that is not registered yet: config.sh takes 3 s and the start of a listener 2 s (docs/testing.md,
	// "GitHub: the stand-in"). resting is how much later one does that reads its record every 2 s.
	registering = 5 * time.Second
	resting     = 2 * time.Second
)

// Want is what a request looks for in an idle host.
type Want struct {
	// Caches are the keys of the caches that the run uses.
	Caches []string
	// Listening are the keys of the caches that a host gives to its next run when its runner begins to listen, before that run is known.
	Listening []string
	// Repository is that of the run, canonical.
	Repository string
	// RequestID spreads requests that want the same over hosts that are the same.
	RequestID string
}

// Ranked is an idle host, and why the request takes it before those after it.
type Ranked struct {
	Host   *lifecycle.Record
	Reason Reason
}

// Affinity orders idle hosts for a request, the best first:
//
//  1. The host with which the run is done soonest: what its caches spare the run, less what it needs to begin, in whole seconds.
//  2. A host whose last run was of the repository.
//  3. The host whose caches are worth least to other runs.
//
// It only chooses among hosts that are idle. A request never waits for a better host, and takes as many hosts as it would without
// a choice, so no other request waits longer for its choice. What it returns points into idle.
func Affinity(w Want, idle []lifecycle.Record) []Ranked {
	list := make([]score, len(idle))
	for i := range idle {
		list[i] = scoreOf(w, &idle[i])
	}
	slices.SortFunc(list, score.compare)
	ranked := make([]Ranked, len(list))
	var most stock
	for i, s := range slices.Backward(list) {
		if i == len(list)-1 || s.bytes >= most.bytes {
			most = s.stock
		}
		ranked[i] = Ranked{s.host, Reason{ranked: true, of: len(w.Caches), has: s.stock, most: most, served: s.served}}
	}
	return ranked
}

// stock is what a host has for a run.
type stock struct {
	// caches counts the run's caches on the host, and bytes is their size.
	caches int
	bytes  int64
	// begins is how much later than the quickest host it begins.
	begins time.Duration
}

// gain is by how much sooner the run is done than with a host that begins at once and has none of its caches.
func (s stock) gain() time.Duration { return worth(s.bytes) - s.begins }

// score is what speaks for a host.
type score struct {
	host *lifecycle.Record
	stock
	// others is the size of all other caches.
	others int64
	// served: its last run was of the repository. spread is its place among equals.
	served bool
	spread uint64
}

func scoreOf(w Want, r *lifecycle.Record) score {
	s := score{host: r, served: r.Repository == w.Repository, spread: spread(w.RequestID, r.HostKey)}
	dropped := r.DropCaches.Keys()
	for _, held := range r.Caches.Held() {
		bytes := min(held.Bytes, maxCache)
		if slices.Contains(dropped, held.Key) { // no run will see it
			continue
		}
		if slices.Contains(w.Caches, held.Key) && (r.Standby == nil || slices.Contains(w.Listening, held.Key)) {
			s.caches, s.bytes = s.caches+1, s.bytes+bytes
		} else {
			s.others += bytes
		}
	}
	if r.Standby == nil {
		s.begins += registering
	}
	if r.Resting() {
		s.begins += resting
	}
	return s
}

// spread is a number that a request and a host have together, the same for each replica.
func spread(requestID, hostKey string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(requestID + "\x00" + hostKey)) // it never fails
	return h.Sum64()
}

// maxCache bounds the size that an agent may claim of a cache.
const maxCache = cache.MaxSize

// worth is how long caches of a size spare a run, to the second.
func worth(bytes int64) time.Duration { return time.Duration(bytes/CacheRate) * time.Second }

func (s score) compare(t score) int {
	return cmp.Or(
		cmp.Compare(t.gain(), s.gain()), cmp.Compare(t.caches, s.caches), after(s.served, t.served), cmp.Compare(s.others, t.others), cmp.Compare(s.spread, t.spread),
		strings.Compare(s.host.HostKey, t.host.HostKey),
	)
}

// after is 1 if the second of two hosts has something that the first has not.
func after(first, second bool) int {
	switch {
	case first == second:
		return 0
	case second:
		return 1
	}
	return -1
}

// Reason is why a request takes a host before others. It is kept as numbers, since most hosts that are ranked are not taken: String makes
// the text. The zero value is that of a host that was not chosen.
type Reason struct {
	ranked bool
	// of is how many caches the run uses. has is what the host has, and most what the one has of those after it, or itself, that has most.
	of        int
	has, most stock
	served    bool
}

// String is a clause that follows `since`, for the log of a job, whose readers may know only their own repository's caches. The zero value has none.
func (r Reason) String() string {
	if !r.ranked {
		return ""
	}
	text := r.having()
	if later := r.most.begins - r.has.begins; r.most.bytes > r.has.bytes && later > 0 { // else they differ by less than a second
		text += fmt.Sprintf("; one with %s of them would have begun %s later", cache.Size(r.most.bytes), later)
	}
	return text
}

// having says what the host had.
func (r Reason) having() string {
	switch {
	case r.of == 0:
		return "no cache is for such a run"
	case r.has.caches > 0 && r.of == 1:
		return "it had the run's cache, " + cache.Size(r.has.bytes)
	case r.has.caches > 0:
		return fmt.Sprintf("it had %d of the run's %d caches, %s", r.has.caches, r.of, cache.Size(r.has.bytes))
	case r.most.caches > 0:
		return "it had none of the run's caches"
	case r.served:
		return "no idle host had a cache of the run, and this one served its repository last"
	}
	return "no idle host had a cache of the run"
}
