// Package jobline reads from what Runner.Listener prints whether it has a job.
package jobline

import (
	"bytes"
	"regexp"
	"sync"
	"time"
)

// The lines that a listener prints when it has taken a job, before there is a worker, and when the worker has ended
// (actions/runner 2.336, src/Runner.Listener/JobDispatcher.cs 378 and 591). The rest of a line is the name of the job, which its workflow
// chooses, so only the beginning of the first and the end of the second count.
var (
	jobTaken = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ): Running job: `)
	jobOver  = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ: Job .* completed with result: \w+\s*$`)
)

// longestLine bounds the memory for one line, in bytes. The rest of a longer one is ignored.
const longestLine = 4 << 10

// Reader reads from a listener's output whether it has a job. It is safe for concurrent use.
type Reader struct {
	mu   sync.Mutex
	line []byte
	last Job
}

// Job is the job that a listener has by its own output.
type Job struct {
	At     time.Time // when it was taken; zero: it has none
	Number int       // how many the listener has taken, with this one
}

// Write takes the next piece of the output.
func (l *Reader) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		piece, after, whole := bytes.Cut(rest, []byte("\n"))
		l.line = append(l.line, piece[:min(len(piece), longestLine-len(l.line))]...)
		if whole {
			l.read()
			l.line = l.line[:0]
		}
		rest = after
	}
	return len(p), nil
}

func (l *Reader) read() {
	if m := jobTaken.FindSubmatch(l.line); m != nil {
		l.last.Number++
		l.last.At, _ = time.Parse("2006-01-02 15:04:05Z", string(m[1]))
	} else if jobOver.Match(l.line) {
		l.last.At = time.Time{}
	}
}

// Restart forgets what was read, since all of it comes again.
func (l *Reader) Restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line, l.last = nil, Job{}
}

// Job returns the job that the listener has.
func (l *Reader) Job() Job {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}
