package host

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/remuda-ci/remuda/internal/host/jobline"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// takenLimit is how long a job that the listener took counts without a worker. actions/runner renews the job's lock first and tries that up
// to six times with 10 s between (2.336, src/Runner.Listener/JobDispatcher.cs 751 and 799-820); then it gives the job up and says nothing.
const takenLimit = 90 * time.Second

// logLines reads the lines of a listener from a log that is still being written.
type logLines struct {
	start  startRecord
	offset int64
	lines  jobline.Reader
}

func (c *logLines) taken(path string, b startRecord) jobline.Job {
	if c.start != b {
		c.start, c.offset = b, b.LogOffset
		c.lines.Restart()
	}
	f, err := safefile.Open(path)
	if err != nil {
		return c.lines.Job()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < c.offset {
		c.offset = 0 // it was truncated
	}
	for buf := make([]byte, scanChunk); ; {
		n, err := f.ReadAt(buf, c.offset)
		_, _ = c.lines.Write(buf[:n]) // it never fails
		c.offset += int64(n)
		if n == 0 || errors.Is(err, io.EOF) || err != nil {
			return c.lines.Job()
		}
	}
}

// hasTaken reports whether the listener has printed that it took a job whose worker has not been seen yet.
func (h *Host) hasTaken(ctx context.Context, st taskStatus) bool {
	if !st.running || st.start == nil {
		h.processes.taken(ctx, h.task(taskListen), nil)
		return false
	}
	job := h.processes.taken(ctx, h.task(taskListen), st.start)
	if h.started.of == *st.start && job.Number <= h.started.number {
		return false
	}
	age := time.Since(job.At)
	return !job.At.IsZero() && age < takenLimit && age > -takenLimit
}

// startedJob is a job that has been given to its worker.
type startedJob struct {
	of     startRecord // its listener
	number int         // as in jobline.Job
}

// sawWorker records that the job which the listener has by its output has its worker.
func (h *Host) sawWorker(ctx context.Context, st taskStatus) {
	if st.running && st.start != nil {
		h.started = startedJob{*st.start, h.processes.taken(ctx, h.task(taskListen), st.start).Number}
	}
}
