package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/host/units"
)

// tailEntry is the end of the output of a task at a certain time.
type tailEntry struct {
	start startRecord
	text  string
	at    time.Time
}

// hasWritten watches the journal for the text. Once the unit has ended, its output is
// complete and is searched once.
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

// tailAge is for how long the tail of a running task is reused.
const tailAge = time.Second

// tail reads the journal at most once in tailAge, and once for a task that has ended.
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

// withUnitOutput adds the output of the unit to an error of its start.
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
