package runner

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

// logPiece is the most of a log that goes in one call.
const logPiece = 256 << 10

// reporter sends a job's log and progress to the server, in order, from a goroutine of its own: neither a slow server nor one
// that is away stops the job. What it cannot send it keeps, up to protocol.LogLimit bytes, the last ones.
type reporter struct {
	client *client
	job    int64
	lost   func() // called when the server says that the job is no longer ours
	done   chan struct{}

	mu       sync.Mutex
	work     *sync.Cond
	unsent   []byte
	offset   int64 // of unsent in the whole log
	progress []protocol.StepState
	closed   bool
}

func newReporter(c *client, job int64, lost func()) *reporter {
	r := &reporter{client: c, job: job, lost: lost, done: make(chan struct{})}
	r.work = sync.NewCond(&r.mu)
	go r.loop()
	return r
}

// Write takes a piece of the log. It never fails and never waits for the server.
func (r *reporter) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsent = append(r.unsent, p...)
	if over := len(r.unsent) - protocol.LogLimit; over > 0 {
		r.unsent = slices.Delete(r.unsent, 0, over)
		r.offset += int64(over)
	}
	r.work.Signal()
	return len(p), nil
}

// steps takes the job's progress; only the newest is sent.
func (r *reporter) steps(s []protocol.StepState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = slices.Clone(s)
	r.work.Signal()
}

// close returns when everything is sent, or completeTime has passed on one piece of it.
func (r *reporter) close() {
	r.mu.Lock()
	r.closed = true
	r.work.Signal()
	r.mu.Unlock()
	<-r.done
}

func (r *reporter) loop() {
	defer close(r.done)
	for {
		piece, offset, progress, more := r.next()
		if !more {
			return
		}
		if len(piece) > 0 {
			r.send(protocol.PathLog, url.Values{"offset": {strconv.FormatInt(offset, 10)}}, piece)
		}
		if progress != nil {
			r.send(protocol.PathSteps, nil, progress)
		}
	}
}

func (r *reporter) next() (piece []byte, offset int64, progress []protocol.StepState, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.unsent) == 0 && r.progress == nil {
		if r.closed {
			return nil, 0, nil, false
		}
		r.work.Wait()
	}
	n := min(len(r.unsent), logPiece)
	piece, offset, progress = slices.Clone(r.unsent[:n]), r.offset, r.progress
	r.unsent, r.offset, r.progress = r.unsent[n:], r.offset+int64(n), nil
	return piece, offset, progress, true
}

// send insists. A piece that the server refuses, or does not take for completeTime, is given up.
func (r *reporter) send(path string, query url.Values, body any) {
	err := insist(context.Background(), completeTime, func() error {
		_, err := r.client.call(context.Background(), callTime, http.MethodPost, fmt.Sprintf(path, r.job), query, body, nil)
		return err
	})
	if codeOf(err) == http.StatusConflict {
		r.lost()
	}
}
