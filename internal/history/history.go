// Package history reads the jobs of workflows that ran: from CSV, and from recorded deliveries of GitHub's webhooks. It is what
// `remuda plan --history` plays.
package history

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Job is a job of a workflow run that has ended.
type Job struct {
	// ID is GitHub's number of the job; 0: not known.
	ID int64
	// Repository is "owner/name".
	Repository string
	// RunID is the run that the job is of; empty: not known.
	RunID string
	// Labels are those of runs-on.
	Labels []string
	// Created is when the job began to wait for a runner, Started when a runner had it, and Completed when it was over.
	Created, Started, Completed time.Time
}

// Took is how long the job ran.
func (j Job) Took() time.Duration { return j.Completed.Sub(j.Started) }

// Waited is how long the job waited, as it was recorded. It is 0 for one that GitHub says began before it was made.
func (j Job) Waited() time.Duration { return max(0, j.Started.Sub(j.Created)) }

// History is what jobs there were.
type History struct {
	// Jobs are in the order in which they were created; of jobs of the same time: by repository and id.
	Jobs []Job
	// Unstarted are the jobs that no runner ever had, Open those without a recorded end, Backward those that ended before they began, and
	// Long those that ran for more than MaxTook. Copies were over before they were created: for jobs that a later attempt of a run does not run
	// again GitHub makes new ones, with the times of the earlier attempt. They are not among Jobs.
	Unstarted, Open, Backward, Long, Copies int
}

// Bounds of what is read.
const (
	// MaxBytes bounds a file: a million jobs are about 120 MB of CSV.
	MaxBytes = 512 << 20
	// MaxJobs bounds the jobs of a history.
	MaxJobs = 1_000_000
	// MaxLine bounds a line, in bytes. A delivery of GitHub has 25 MB at most, and those of jobs a few KB.
	MaxLine = 1 << 20
	// MaxTook bounds a job. GitHub lets no run last for longer, so a longer one was recorded wrongly.
	MaxTook = 35 * 24 * time.Hour
	// MaxSpan is how long after the first job was created the last one may be over: who plays a history goes through all of its nights.
	MaxSpan = 3 * 366 * 24 * time.Hour
	// firstYear and lastYear are those that a time may be of. Others have no place in the sums of a replay, and are mistakes.
	firstYear, lastYear = 2000, 2099
)

// outOfRange says in a sentence that a time is not one of a job; empty: it may be, or it did not come.
func outOfRange(what string, t time.Time) string {
	if t.IsZero() || t.Year() >= firstYear && t.Year() <= lastYear {
		return ""
	}
	return fmt.Sprintf("%s is of the year %d, which is not from %d to %d", what, t.Year(), firstYear, lastYear)
}

// Error is what is wrong with a history, and where.
type Error struct {
	// Name is that of the file, and Line its line; 0: all of it.
	Name string
	Line int
	// Why is a sentence.
	Why string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("read history %s: %s", e.Name, e.Why)
	}
	return fmt.Sprintf("read history %s, line %d: %s", e.Name, e.Line, e.Why)
}

// Load reads a file of either kind; "-" is standard input. The error is an *Error if the content is wrong.
func Load(path string, stdin io.Reader) (History, error) {
	if path == "-" {
		return Read("standard input", stdin)
	}
	f, err := os.Open(path)
	if err != nil {
		return History{}, fmt.Errorf("read history: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	return Read(path, f)
}

// Read reads a history, known by name in errors. One that begins with a brace has recorded deliveries, one on each line, and any other is CSV.
func Read(name string, from io.Reader) (History, error) { return ReadSince(name, from, time.Time{}) }

// ReadSince reads what of a history was created at a time or later.
func ReadSince(name string, from io.Reader, since time.Time) (History, error) {
	limited := &bounded{from: from, left: MaxBytes}
	in := bufio.NewReader(limited)
	if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark { // an error comes again below
		_, _ = in.Discard(len(byteOrderMark))
	}
	if why := otherKind(in); why != "" {
		return History{}, &Error{Name: name, Why: why}
	}
	first, blank, err := firstByte(in)
	if err != nil {
		return History{}, &Error{Name: name, Why: emptyOr(err)}
	}
	read := readCSV
	switch first {
	case '{':
		read = readDeliveries
	case '[':
		return History{}, &Error{Name: name, Why: "it is a list in JSON; write each delivery on a line of its own, as `jq -c '.[]'` does"}
	}
	h, err := read(name, in, since)
	var wrong *Error
	if errors.As(err, &wrong) && wrong.Line > 0 {
		wrong.Line += blank
	}
	switch {
	case limited.over:
		return History{}, &Error{Name: name, Why: fmt.Sprintf("it has more than %d MiB; split it", MaxBytes>>20)}
	case err != nil:
		return History{}, err
	}
	h.Sort()
	return h, h.tooLong(name)
}

// byteOrderMark is what some spreadsheets write before CSV.
const byteOrderMark = "\uFEFF"

// otherKind says in a sentence that a file is neither CSV nor JSON, and what makes it so; empty: it may be.
func otherKind(in *bufio.Reader) string {
	mark, _ := in.Peek(2) // an error comes again below
	switch string(mark) {
	case "\xff\xfe", "\xfe\xff":
		return "it is in UTF-16; save it in UTF-8"
	case "\x1f\x8b":
		return "it is packed; unpack it, as `gzip -d` does"
	}
	return ""
}

// tooLong is an error if the jobs, in their order, span more than MaxSpan.
func (h *History) tooLong(name string) error {
	if len(h.Jobs) == 0 {
		return nil
	}
	last := h.Jobs[0]
	for _, j := range h.Jobs {
		if j.Completed.After(last.Completed) {
			last = j
		}
	}
	if first := h.Jobs[0].Created; last.Completed.Sub(first) > MaxSpan {
		return &Error{Name: name, Why: fmt.Sprintf("its jobs are from %s to %s, and may be from %d days; split it",
			first.UTC().Format(time.DateOnly), last.Completed.UTC().Format(time.DateOnly), MaxSpan/(24*time.Hour))}
	}
	return nil
}

func emptyOr(err error) string {
	if errors.Is(err, io.EOF) {
		return "it is empty"
	}
	return err.Error()
}

// firstByte is the first one that is no space, which it leaves to be read, and how many lines end before it.
func firstByte(in *bufio.Reader) (first byte, lines int, err error) {
	for {
		b, err := in.ReadByte()
		switch {
		case err != nil:
			return 0, lines, err
		case b == '\n':
			lines++
		case b != ' ' && b != '\t' && b != '\r':
			return b, lines, in.UnreadByte()
		}
	}
}

// add takes a job that has ended, or counts why it does not. One that was created before a time is passed over.
func (h *History) add(j Job, since time.Time) {
	switch {
	case !j.Created.IsZero() && j.Created.Before(since):
	case j.Started.IsZero():
		h.Unstarted++
	case j.Completed.IsZero():
		h.Open++
	case j.Completed.Before(j.Started):
		h.Backward++
	case j.Took() > MaxTook:
		h.Long++
	case j.Completed.Before(j.Created):
		h.Copies++
	default:
		if j.Created.IsZero() {
			j.Created = j.Started
		}
		h.Jobs = append(h.Jobs, j)
	}
}

// Sort puts the jobs into their order.
func (h *History) Sort() {
	slices.SortStableFunc(h.Jobs, func(a, b Job) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.ID, b.ID))
	})
}

// LeftOut says in sentences what of the history is not among its jobs.
func (h History) LeftOut() (sentences []string) {
	for _, of := range []struct {
		n   int
		why string
	}{
		{h.Unstarted, "no runner ever had them"},
		{h.Open, "no end of them is recorded"},
		{h.Backward, "they ended before they began"},
		{h.Copies, "they were over before they were created: GitHub copies jobs into a later attempt of their run"},
		{h.Long, fmt.Sprintf("they ran for more than %d days, and GitHub ends each run by then", MaxTook/(24*time.Hour))},
	} {
		if of.n > 0 {
			sentences = append(sentences, fmt.Sprintf("Jobs left out: %d, since %s.", of.n, of.why))
		}
	}
	return sentences
}

// bounded reads so many bytes at most, and notes whether there were more.
type bounded struct {
	from io.Reader
	left int64
	over bool
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		n, err := b.from.Read(p[:1])
		if b.over = n > 0; b.over {
			return 0, io.ErrUnexpectedEOF
		}
		return 0, err
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
