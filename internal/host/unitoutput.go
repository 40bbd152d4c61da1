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
type tailEntry struct {
	start startRecord
	text  string
	at    time.Time
}

// said waits in the journal, and is told when the text comes. When the unit has
// ended all is there, and is looked through once.
func (l *unitProcesses) hasWritten(ctx context.Context, t task, b startRecord, text []byte) bool {
	if l.watch == nil || l.watchedStart != b {
		if l.watch != nil {
			l.watch.Stop()
		}
		l.watchedStart, l.searched = b, false
		l.watch = units.For(unitName(t, b), b.BegunAt, text, l.h.notify)
	}
	if !l.watch.Seen() && !l.searched && exists(t.path+".exit") {
		l.searched = true
		l.watch.Stop()
		if units.Said(ctx, unitName(t, b), b.BegunAt, text) {
			l.watch.See()
		}
	}
	return l.watch.Seen()
}

// tailAge is for how long the end of a living task's words will do.
const tailAge = time.Second

// tail asks the journal seldom, and once for what will not change any more.
func (l *unitProcesses) tail(ctx context.Context, t task, b startRecord) string {
	ended := exists(t.path + ".exit")
	if w := l.tails[t.name]; w.start == b && (time.Since(w.at) < tailAge && !ended || w.at.IsZero()) {
		return w.text
	}
	w := tailEntry{start: b, text: units.Tail(ctx, unitName(t, b), b.BegunAt, tailLimit)}
	w.text = strings.TrimSpace(strings.ToValidUTF8(w.text, ""))
	if !ended {
		w.at = time.Now()
	}
	l.tails[t.name] = w
	return w.text
}

// explained adds what the unit itself had to say.
func (l *unitProcesses) withUnitOutput(ctx context.Context, unit string, since time.Time, err error) error {
	if !errors.Is(err, units.ErrNotStarted) {
		return err
	}
	said := strings.TrimSpace(units.Tail(ctx, unit, since, tailLimit/4))
	if said == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, said)
}
