package units

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/remuda-ci/remuda/internal/retry"
)

// The journal is read with journalctl: its file format is internal to systemd.

// selection returns the arguments that select the output of a unit since a time. The
// field is set by journald and cannot be forged by the unit.
func selection(unit string, since time.Time) []string {
	at := strconv.FormatFloat(float64(since.UnixMicro())/1e6, 'f', 6, 64)
	return []string{"--quiet", "--no-pager", "--output=cat", "--all", "--since=@" + at, "_SYSTEMD_UNIT=" + unit}
}

// readLimit bounds a call of journalctl.
const readLimit = 2 * time.Second

// Tail returns the end of the output of a unit since a time, at most limit bytes, or what
// was wrong if it cannot be read.
func Tail(ctx context.Context, unit string, since time.Time, limit int) string {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	// A line has a byte at least.
	args := append(selection(unit, since), "--lines="+strconv.Itoa(limit))
	text := &last{limit: limit}
	cmd := exec.CommandContext(ctx, "journalctl", args...)
	cmd.Stdout = text
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Sprintf("cannot read the journal of %s: %v", unit, err)
	}
	return string(text.data)
}

// Said reports whether a unit has written a text since a time.
func Said(ctx context.Context, unit string, since time.Time, text []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	return search(ctx, selection(unit, since), text)
}

// search reports whether the output of journalctl contains a text.
func search(ctx context.Context, args []string, text []byte) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "journalctl", args...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return false
	}
	found := contains(out, text)
	cancel()
	_ = cmd.Wait() // it has printed what there was, or need not
	return found
}

// last keeps the end of what is written to it.
type last struct {
	limit int
	data  []byte
}

func (l *last) Write(p []byte) (int, error) {
	l.data = append(l.data, p...)
	if len(l.data) > 2*l.limit {
		l.data = append(l.data[:0], l.data[len(l.data)-l.limit:]...)
	}
	return len(p), nil
}

// Watch waits for a text in the output of a unit.
type Watch struct {
	seen   atomic.Bool
	cancel context.CancelFunc
}

// For watches the output of a unit, from a time on, until a text appears or the watch is
// stopped. It calls seen when the text appears.
func For(unit string, since time.Time, text []byte, seen func()) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{cancel: cancel}
	go w.run(ctx, append(selection(unit, since), "--follow", "--lines=all"), text, seen)
	return w
}

// Follow hands what a unit writes, from a time on, to a writer until the watch is stopped, and calls wrote each time. After journald was
// replaced all of it comes again: restart is called first.
func Follow(unit string, since time.Time, to Follower, wrote func()) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{cancel: cancel}
	go func() {
		for ctx.Err() == nil {
			to.Restart()
			cmd := exec.CommandContext(ctx, "journalctl", append(selection(unit, since), "--follow", "--lines=all")...)
			cmd.Stdout = notifying{to, wrote}
			_ = cmd.Run() // it ends by itself when journald is replaced
			_ = retry.Sleep(ctx, againAfter)
		}
	}()
	return w
}

// Follower takes the output of a unit.
type Follower interface {
	io.Writer
	// Restart is called before the output begins, each time that it does.
	Restart()
}

type notifying struct {
	io.Writer
	wrote func()
}

func (n notifying) Write(p []byte) (int, error) {
	defer n.wrote()
	return n.Writer.Write(p)
}

// Seen reports whether the text has appeared.
func (w *Watch) Seen() bool { return w.seen.Load() }

// See records that the text was found in another way.
func (w *Watch) See() { w.seen.Store(true) }

// Stop ends the watch.
func (w *Watch) Stop() { w.cancel() }

// againAfter is the pause before journalctl is restarted after it ended by itself, as it
// does when journald is replaced.
const againAfter = time.Second

func (w *Watch) run(ctx context.Context, args []string, text []byte, seen func()) {
	defer w.cancel()
	for ctx.Err() == nil {
		if search(ctx, args, text) {
			w.seen.Store(true)
			seen()
			return
		}
		_ = retry.Sleep(ctx, againAfter) // the loop looks at ctx itself
	}
}

// chunk bounds the memory of a search, in bytes, whatever the length of the lines.
const chunk = 16 << 10

// contains reads until the text or the end.
func contains(r io.Reader, text []byte) bool {
	buf := make([]byte, 0, chunk+len(text))
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if bytes.Contains(buf, text) {
			return true
		}
		if err != nil {
			return false
		}
		// The text may lie across the end of the chunk.
		keep := min(len(buf), len(text)-1)
		buf = append(buf[:0], buf[len(buf)-keep:]...)
	}
}
