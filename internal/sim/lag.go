package sim

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// lag is the store as eventually consistent reads and its indexes show it: a
// copy to which each write comes later, row by row in order.
type lag struct {
	w   *world
	old *memory.Store
	// upTo is until when the writes of a row are under way.
	upTo map[string]time.Time
}

func newLag(w *world) *lag {
	return &lag{w: w, old: memory.New(w.clock), upTo: map[string]time.Time{}}
}

// maxLag bounds how late a write comes to the lagging copy.
const maxLag = 15 * time.Second

// follow makes a write of a row reach the copy, later or at once.
func (l *lag) follow(row string, put func(*memory.Store)) {
	d := time.Duration(0)
	if l.w.chaos {
		d = l.w.exp(300*time.Millisecond, 3*time.Second)
		if l.w.chance(FaultLongLag) {
			d = l.w.between(3*time.Second, maxLag)
		}
	}
	at := l.w.now.Add(d)
	if last := l.upTo[row]; at.Before(last) {
		at = last
	}
	if !at.After(l.w.now) {
		put(l.old)
		return
	}
	l.upTo[row] = at
	l.w.at(at, func() {
		if l.upTo[row].Equal(at) {
			delete(l.upTo, row)
		}
		put(l.old)
	})
}

func (l *lag) record(after lifecycle.Record) {
	l.follow("host "+after.HostKey, func(m *memory.Store) {
		if after.Version == 1 {
			must(m.CreateInstance(background, after))
			return
		}
		after.Version--
		must1(m.UpdateInstance(background, after))
	})
}

func (l *lag) request(after lifecycle.Request) {
	l.follow("request "+lifecycle.RunKey(after.Repository, after.RunID)+" "+after.RequestID, func(m *memory.Store) {
		if after.Version == 1 {
			must(m.CreateRequest(background, after))
			return
		}
		after.Version--
		must1(m.UpdateRequest(background, after))
	})
}

func (l *lag) report(p lifecycle.Report) {
	l.follow("report "+p.HostKey, func(m *memory.Store) { must(m.ForHost(p.HostKey).PutReport(background, p)) })
}

func (l *lag) noReport(hostKey string) {
	l.follow("report "+hostKey, func(m *memory.Store) { must(m.DeleteReport(background, hostKey)) })
}

// must is for calls that cannot fail: a fault of the simulator itself.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func must1[T any](v T, err error) T {
	must(err)
	return v
}
