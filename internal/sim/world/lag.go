package world

import (
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

// lag is the store as eventually consistent reads and its indexes show it: a
// copy to which each write comes later, row by row in order.
type lag struct {
	w   *World
	old *memory.Store
	// upTo is until when the writes of a row are under way.
	upTo map[string]time.Time
	// resets counts the restores of the store. Writes under way before one are dropped.
	resets int
}

func newLag(w *World) *lag {
	return &lag{w: w, old: memory.New(w.Clock), upTo: map[string]time.Time{}}
}

// reset makes the copy show what the store has now.
func (l *lag) reset() {
	l.old, l.upTo = l.w.Truth.Clone(), map[string]time.Time{}
	l.resets++
}

// MaxLag bounds how late a write comes to the lagging copy.
const MaxLag = 15 * time.Second

// follow makes a write of a row reach the copy, later or at once.
func (l *lag) follow(row string, put func(*memory.Store)) {
	d := time.Duration(0)
	if l.w.Chaos {
		d = l.w.Exp(300*time.Millisecond, 3*time.Second)
		if l.w.Chance(engine.FaultLongLag) {
			d = l.w.Between(3*time.Second, MaxLag)
		}
	}
	at := l.w.Now.Add(d)
	if last := l.upTo[row]; at.Before(last) {
		at = last
	}
	if !at.After(l.w.Now) {
		put(l.old)
		return
	}
	l.upTo[row] = at
	resets := l.resets
	l.w.At(at, func() {
		if l.resets != resets {
			return
		}
		if l.upTo[row].Equal(at) {
			delete(l.upTo, row)
		}
		put(l.old)
	})
}

func (l *lag) record(after lifecycle.Record) {
	l.follow("host "+after.HostKey, func(m *memory.Store) {
		if after.Version == 1 {
			engine.Must(m.CreateInstance(engine.Background, after))
			return
		}
		after.Version--
		engine.Must1(m.UpdateInstance(engine.Background, after))
	})
}

func (l *lag) request(after lifecycle.Request) {
	l.follow("request "+lifecycle.RunKey(after.Repository, after.RunID)+" "+after.RequestID, func(m *memory.Store) {
		if after.Version == 1 {
			engine.Must(m.CreateRequest(engine.Background, after))
			return
		}
		after.Version--
		engine.Must1(m.UpdateRequest(engine.Background, after))
	})
}

// row is any row whose version counts from 1.
func (l *lag) row(k *store.Kind, after store.Row, version int64) {
	key, row := k.Key(after), k.Copy(after)
	l.follow(k.Name+" "+strings.Join(key[:], "/"), func(m *memory.Store) {
		if version == 1 {
			engine.Must(m.Create(engine.Background, k, row))
			return
		}
		engine.Must(m.Update(engine.Background, k, row))
	})
}

func (l *lag) report(p lifecycle.Report) {
	l.follow("report "+p.HostKey, func(m *memory.Store) { engine.Must(m.ForHost(p.HostKey).PutReport(engine.Background, p)) })
}

func (l *lag) noReport(hostKey string) {
	l.follow("report "+hostKey, func(m *memory.Store) { engine.Must(m.DeleteReport(engine.Background, hostKey)) })
}
