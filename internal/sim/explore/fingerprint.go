package explore

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// print tells two states apart. Of 128 bits, so that no two of some million
// are taken for one by chance.
type print [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// text is a canonical text of a state under construction. Times stand in it
// relative to now and versions relative to the store's, so that states that
// differ in nothing that matters have one text.
type text struct {
	s   *state
	buf []byte
	// versions are those of the rows in the text, in its order.
	versions []version
}

func (t *text) print() print {
	return print{maphash.Bytes(seeds[0], t.buf), maphash.Bytes(seeds[1], t.buf)}
}

// fingerprint is of the whole state, or of the world without the operations.
func (s *state) fingerprint(withOps bool) print {
	if s.told == nil {
		s.told = &text{s: s, buf: make([]byte, 0, 1024)}
		s.told.world()
	}
	if !withOps {
		return s.told.print()
	}
	t := &text{s: s, buf: slices.Clone(s.told.buf), versions: s.told.versions}
	t.operations()
	return t.print()
}

func (t *text) world() {
	for _, r := range t.s.records() {
		t.record(r)
	}
	for i, ask := range t.s.x.bounds.Asks {
		id := "ask-" + strconv.Itoa(i+1)
		if q, err := t.s.store.Request(background, repository, ask.Run, id); err == nil {
			t.request(q)
		}
	}
	for _, h := range t.s.hosts {
		stored := must1(t.s.store.Reports(background, []string{h.key}))[h.key]
		t.add("host", h.key, h.registered, h.cleaned, h.busy, stored.Assignment, string(stored.Signal), string(stored.Cause), stored.Busy)
		if h.answer != nil {
			t.add("answer", h.answer.Assignment, string(h.answer.Signal), string(h.answer.Cause))
		}
	}
	for _, m := range t.s.machines {
		t.add("machine", m.InstanceID, string(m.State), m.RequestID, m.Launch)
	}
	for _, m := range t.s.messages {
		t.add("message", m.id, m.receives, m.hidden, m.HostKey, m.Assignment)
		t.time(m.Threshold)
	}
	u := t.s.used
	t.add("used", u.releases, u.crashes, u.lost, u.failures, u.jobs, u.passes, t.s.launched, t.s.lastID)
	for _, n := range t.s.asked {
		t.add(n)
	}
}

// operations adds the progress of every operation. The replicas are alike, so
// it does not matter which of them does what; and when none can crash any more
// it does not matter either what they do together.
func (t *text) operations() {
	ranks := t.ranks()
	var parts []string
	world := len(t.buf)
	cut := func() {
		parts = append(parts, string(t.buf[world:]))
		t.buf = t.buf[:world]
	}
	together := t.s.used.crashes < t.s.x.bounds.Crashes
	for r := range replicas {
		for _, slot := range []int{callerSlot(r), sweepSlot(r)} {
			t.operation(t.s.ops[slot], ranks)
			if !together {
				cut()
			}
		}
		if together {
			cut()
		}
	}
	slices.Sort(parts)
	for _, p := range parts {
		t.buf = append(t.buf, p...)
	}
}

func (t *text) operation(o *op, ranks map[version]int) {
	if o == nil {
		t.add("nothing")
		return
	}
	t.buf = binary.NativeEndian.AppendUint64(t.buf, o.progress[0])
	t.buf = binary.NativeEndian.AppendUint64(t.buf, o.progress[1])
	for _, v := range o.versions {
		t.add(ranks[v])
	}
}

// ranks are the ages of all versions of each row that anybody knows: 0 is the
// store's. Versions are only ever compared, so their order is all there is to
// them.
func (t *text) ranks() map[version]int {
	known := slices.Clone(t.versions)
	for _, o := range t.s.ops {
		if o != nil {
			known = append(known, o.versions...)
		}
	}
	slices.SortFunc(known, func(a, b version) int { return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(b.n, a.n)) })
	known = slices.Compact(known)
	ranks := make(map[version]int, len(known))
	rank := 0
	for i, v := range known {
		if rank++; i == 0 || known[i-1].row != v.row {
			rank = 0
		}
		ranks[v] = rank
	}
	return ranks
}

// answers adds what an operation got while a closure held its progress.
func (t *text) answers(st step) {
	for _, a := range st.answers {
		t.add(a.call)
		t.value(a.value)
		if a.err != nil {
			t.add(a.err.Error())
		}
	}
}

func (t *text) add(parts ...any) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			t.buf = append(t.buf, p...)
		case int:
			t.buf = strconv.AppendInt(t.buf, int64(p), 10)
		case int64:
			t.buf = strconv.AppendInt(t.buf, p, 10)
		case bool:
			t.buf = strconv.AppendBool(t.buf, p)
		default:
			panic(fmt.Sprintf("no text of %T", p))
		}
		t.buf = append(t.buf, 0)
	}
}

func (t *text) time(at time.Time) {
	if at.IsZero() {
		t.add("never")
		return
	}
	t.add(int64(at.Sub(t.s.now)))
}

// record adds a record. When it was created, launched and updated decides
// nothing within a day, and its reason is for people.
func (t *text) record(r lifecycle.Record) {
	t.add("record", r.HostKey, string(r.State), r.RunID, r.RequestID, r.Assignment, r.RunnerName, r.ClaimFailures, r.Retiring)
	t.versions = append(t.versions, version{r.HostKey, r.Version})
	for _, at := range []time.Time{r.Threshold, r.RuntimeEndsAt, r.ReleasedAt, r.DueAt, r.PooledAt, r.Hold} {
		t.time(at)
	}
	if r.Registration != nil {
		t.add(string(r.Registration.Kind))
	}
}

// request adds a request, without its reason.
func (t *text) request(q lifecycle.Request) {
	t.add("request", q.RequestID, string(q.Outcome), q.Launches, q.OnDemand, q.Unattended, q.Released())
	t.versions = append(t.versions, version{q.RequestID, q.Version})
	for _, at := range []time.Time{q.Deadline, q.DueAt} {
		t.time(at)
	}
	for _, taken := range q.Taken {
		t.add(taken.HostKey)
	}
	if q.Launch != nil {
		t.add("launch", q.Launch.Number, q.Launch.Count)
	}
}
