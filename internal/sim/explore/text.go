package explore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
)

// text is a canonical text of something under construction. Times, versions
// and handles are kept aside, since what they mean depends on now, on the
// store and on the queue: two things that differ in nothing that matters come
// to have one text.
type text struct {
	buf      []byte
	times    []time.Duration // since epoch
	versions []version
	handles  []string
	// apart tells things apart that mean the same: it is for people, or for
	// the rules.
	apart []byte
}

// version is a version of a row as an operation knows it.
type version struct {
	row cell
	n   int64
}

// exact is the whole text: things with the same are the same thing.
func (t *text) exact() string {
	b := slices.Clone(t.buf)
	for _, at := range t.times {
		b = binary.AppendVarint(b, int64(at/time.Second))
	}
	for _, v := range t.versions {
		b = binary.AppendVarint(append(b, byte(v.row)), v.n)
	}
	for _, h := range t.handles {
		b = append(append(b, h...), 0)
	}
	return string(append(b, t.apart...))
}

// meaning is the text with times as they are from now, and of the versions of
// each row only which are older than others. That is all that is ever asked of
// them: how long until a time, whether a row has a newer version.
func (t *text) meaning(now time.Duration) string {
	b := slices.Clone(t.buf)
	for _, at := range t.times {
		b = binary.AppendVarint(b, int64((at-now)/time.Second))
	}
	for _, v := range t.versions {
		older := map[int64]bool{}
		for _, o := range t.versions {
			if o.row == v.row && o.n > v.n {
				older[o.n] = true
			}
		}
		b = append(b, byte(v.row), byte(len(older)))
	}
	return string(b)
}

// known are the newest versions of the rows in the text.
func (t *text) known() []version {
	var known []version
	for _, v := range t.versions {
		i := slices.IndexFunc(known, func(k version) bool { return k.row == v.row })
		if i < 0 {
			known = append(known, v)
		} else {
			known[i].n = max(known[i].n, v.n)
		}
	}
	return known
}

func (t *text) add(parts ...any) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			if strings.HasPrefix(p, handlePrefix) {
				t.handles = append(t.handles, p)
				p = handlePrefix
			}
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
	t.add("at")
	t.times = append(t.times, at.Sub(epoch))
}

// aside adds times that decide nothing.
func (t *text) aside(times ...time.Time) {
	for _, at := range times {
		t.apart = binary.AppendVarint(t.apart, at.Unix())
	}
}

// record adds a record. When it was created, launched and updated decides
// nothing within a day, and its reason is for people.
func (t *text) record(r lifecycle.Record) {
	t.add("record", r.HostKey, string(r.State), r.RunID, r.RequestID, r.Assignment, r.RunnerName, r.ClaimFailures, r.Retiring)
	if host := hostOf(r.HostKey); host >= 0 {
		t.versions = append(t.versions, version{instanceCell + cell(host), r.Version})
	}
	for _, at := range []time.Time{r.Threshold, r.RuntimeEndsAt, r.ReleasedAt, r.DueAt, r.PooledAt, r.Hold} {
		t.time(at)
	}
	t.aside(r.CreatedAt, r.LaunchedAt, r.UpdatedAt, r.ExpiresAt)
	if r.Registration != nil {
		t.add(string(r.Registration.Kind))
	}
	if s := r.Standby; s != nil {
		t.add("standby", s.Assignment, s.RunnerID, s.Discarded)
	}
	if v := r.RootVolume; v != nil {
		t.add("root volume", v.Task, !v.ReplacedAt.IsZero())
		t.time(v.At)
		t.aside(v.ReplacedAt)
	}
	if s := r.Stop; s != nil {
		t.add("stop", !s.StoppedAt.IsZero())
		for _, at := range []time.Time{s.At, s.StartAt, s.RetryAt} {
			t.time(at)
		}
	}
	t.add(r.TrustKey, r.Uses == 0)
	if r.StandbyFailed {
		t.add("standby failed")
	}
}

// request adds a request, without its reason. It remembers which pause it waits for.
func (t *text) request(q lifecycle.Request) {
	t.add("request", q.RequestID, string(q.Outcome), q.Launches, q.OnDemand, q.Unattended, q.Released(), q.QuotaReason)
	if ask := askOf(q.RequestID); ask >= 0 {
		t.versions = append(t.versions, version{requestCell + cell(ask), q.Version})
	}
	for _, at := range []time.Time{q.Deadline, q.DueAt} {
		t.time(at)
	}
	t.aside(q.CreatedAt, q.ReleasedAt, q.ExpiresAt)
	t.add(len(q.Taken))
	for _, taken := range q.Taken {
		t.add(taken.HostKey)
	}
	if q.Launch != nil {
		t.add("launch", q.Launch.Number, q.Launch.Count)
	}
}

func (t *text) report(p lifecycle.Report) {
	t.add("report", p.Assignment, p.Served, string(p.Signal), string(p.Cause), p.Busy)
}

// mail adds the queue. A message is identified by its place.
func (t *text) mail(q mail) {
	t.add("mail")
	t.apart = binary.AppendVarint(t.apart, int64(q.last))
	for _, m := range q.messages {
		t.add(m.hidden, m.HostKey, m.Assignment)
		t.time(m.Threshold)
		t.apart = append(t.apart, m.handle()...)
	}
}

func (t *text) cloud(c cloud) {
	t.add("cloud")
	for _, m := range c.machines {
		t.add(m.InstanceID, string(m.State), m.RequestID, m.Launch, m.root)
		t.aside(m.LaunchedAt)
		t.apart = append(t.apart, m.token...)
	}
}

// pause adds a pause with what a request remembers of it.
func (t *text) pause(p pause.Pause) {
	t.add("pause", p.On())
	if p.On() {
		t.add(p.String())
	}
	t.apart = binary.AppendVarint(t.apart, p.Version)
}

func (t *text) runner(r runner) { t.add("runner", r.of, r.run, r.gone) }

func (t *text) agent(h agent) {
	t.add("agent", h.registered, h.cleaned, h.busy)
	if h.answer != nil {
		t.report(*h.answer)
	}
}
