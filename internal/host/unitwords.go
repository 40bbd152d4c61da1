package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/host/units"
)

// word is what a task had said when it was asked.
type word struct {
	of   begun
	text string
	at   time.Time
}

// said waits in the journal, and is told when the text comes. When the unit has
// ended all is there, and is looked through once.
func (l *unitLauncher) said(ctx context.Context, t task, b begun, text []byte) bool {
	if l.watch == nil || l.watched != b {
		if l.watch != nil {
			l.watch.Stop()
		}
		l.watched, l.looked = b, false
		l.watch = units.For(unitOf(t, b), b.BegunAt, text, l.h.notify)
	}
	if !l.watch.Seen() && !l.looked && exists(t.path+".exit") {
		l.looked = true
		l.watch.Stop()
		if units.Said(ctx, unitOf(t, b), b.BegunAt, text) {
			l.watch.See()
		}
	}
	return l.watch.Seen()
}

// tailAge is for how long the end of a living task's words will do.
const tailAge = time.Second

// tail asks the journal seldom, and once for what will not change any more.
func (l *unitLauncher) tail(ctx context.Context, t task, b begun) string {
	ended := exists(t.path + ".exit")
	if w := l.told[t.name]; w.of == b && (time.Since(w.at) < tailAge && !ended || w.at.IsZero()) {
		return w.text
	}
	w := word{of: b, text: units.Tail(ctx, unitOf(t, b), b.BegunAt, tailLimit)}
	w.text = strings.TrimSpace(strings.ToValidUTF8(w.text, ""))
	if !ended {
		w.at = time.Now()
	}
	l.told[t.name] = w
	return w.text
}

// explained adds what the unit itself had to say.
func (l *unitLauncher) explained(ctx context.Context, unit string, since time.Time, err error) error {
	if !errors.Is(err, units.ErrNotStarted) {
		return err
	}
	said := strings.TrimSpace(units.Tail(ctx, unit, since, tailLimit/4))
	if said == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, said)
}
