package fromgithub

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/history"
)

// Rows are the jobs that were read, in a file as CSV if it is to be kept. It has the jobs of a run whole or not at all, except for those that
// were written last, which are read again.
type Rows struct {
	file *os.File // nil: none
	runs map[int64]bool
	all  bytes.Buffer // without a file
}

// InMemory are rows without a file.
func InMemory() *Rows {
	r := &Rows{runs: map[int64]bool{}}
	_ = history.WriteHeading(&r.all) // a buffer takes all
	return r
}

// OpenRows opens a file for the jobs of an owner or a repository, to go on after what is in it, or makes it. Two readings at once keep all that
// either reads. A file with jobs of others stays as it is.
func OpenRows(path, of string) (*Rows, error) {
	r := &Rows{runs: map[int64]bool{}}
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read saved jobs: %w", err)
	}
	if !savedJobs(before) {
		return nil, fmt.Errorf("save jobs: %s has something else in it than saved jobs; name another file", path)
	}
	whole := before[:bytes.LastIndexByte(before, '\n')+1] // a line that was cut off has no end
	if len(whole) > 0 {
		if err := r.note(path, whole, of); err != nil {
			return nil, err
		}
	}
	if r.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
		return nil, fmt.Errorf("save jobs: %w", err)
	}
	if len(whole) < len(before) {
		err = r.file.Truncate(int64(len(whole)))
	}
	if err == nil && len(whole) == 0 {
		err = history.WriteHeading(r.file)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("save jobs: %w", err), r.file.Close())
	}
	return r, nil
}

// savedJobs reports whether a file begins as those of Rows do, or was cut off before that.
func savedJobs(file []byte) bool {
	var heading bytes.Buffer
	_ = history.WriteHeading(&heading) // a buffer takes all
	return bytes.HasPrefix(file, heading.Bytes()) || bytes.HasPrefix(heading.Bytes(), file)
}

// note notes the runs that saved rows have, but the last one, which may lack jobs.
func (r *Rows) note(path string, rows []byte, of string) error {
	last, other := int64(0), ""
	err := history.Each(path, bytes.NewReader(rows), func(j history.Job) {
		if owner, _, _ := strings.Cut(j.Repository, "/"); !strings.EqualFold(j.Repository, of) && !strings.EqualFold(owner, of) {
			other = j.Repository
		}
		id, err := strconv.ParseInt(j.RunID, 10, 64)
		if err != nil || id == last {
			return
		}
		if last != 0 {
			r.runs[last] = true
		}
		last = id
	})
	if err == nil && other != "" {
		return fmt.Errorf("save jobs: %s has jobs of %s, and these are of %s; name another file", path, other, of)
	}
	return err
}

func (r *Rows) has(run int64) bool { return r.runs[run] }

// add keeps the jobs of a run.
func (r *Rows) add(run int64, jobs []history.Job) error {
	r.runs[run] = true
	var b bytes.Buffer
	if err := history.Write(&b, jobs...); err != nil {
		return err
	}
	if r.file == nil {
		r.all.Write(b.Bytes())
		return nil
	}
	if _, err := r.file.Write(b.Bytes()); err != nil {
		return fmt.Errorf("save jobs: %w", err)
	}
	return nil
}

// History is what was read, with what an earlier reading has kept, of jobs that were created since a time.
func (r *Rows) History(since time.Time) (history.History, error) {
	if r.file == nil {
		return history.Read("GitHub", &r.all)
	}
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return history.History{}, fmt.Errorf("read saved jobs: %w", err)
	}
	return history.ReadSince(r.file.Name(), r.file, since)
}

// Close closes the file.
func (r *Rows) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
