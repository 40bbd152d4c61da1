package state

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

// headerSize is the length of a log file's first line: the number of bytes dropped before what follows.
const headerSize = 21

// JobLogs keeps the last protocol.LogLimit bytes of each job's log in a file of its own.
type JobLogs struct {
	dir string
	mu  sync.Mutex
}

// NewJobLogs returns the logs in dir.
func NewJobLogs(dir string) *JobLogs { return &JobLogs{dir: dir} }

func (l *JobLogs) path(id int64) string {
	return filepath.Join(l.dir, strconv.FormatInt(id, 10)+".log")
}

// Append adds data that stands at offset of the job's whole output. What is there already is left alone, so a repeated call does
// no harm; a gap means that the worker had to drop what came before.
func (l *JobLogs) Append(id, offset int64, data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	dropped, kept, err := l.read(id)
	if err != nil {
		return fmt.Errorf("read log of job %d: %w", id, err)
	}
	end := dropped + int64(len(kept))
	if offset > end {
		dropped, kept, end = offset, nil, offset
	}
	if offset+int64(len(data)) <= end {
		return nil
	}
	fresh := data[end-offset:]
	if len(kept)+len(fresh) <= 2*protocol.LogLimit && len(kept) > 0 {
		return l.extend(id, fresh)
	}
	kept = append(kept, fresh...)
	if over := len(kept) - protocol.LogLimit; over > 0 {
		dropped, kept = dropped+int64(over), kept[over:]
	}
	return l.write(id, dropped, kept)
}

func (l *JobLogs) extend(id int64, data []byte) error {
	f, err := os.OpenFile(l.path(id), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log of job %d: %w", id, err)
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write log of job %d: %w", id, err)
	}
	return nil
}

func (l *JobLogs) write(id, dropped int64, data []byte) error {
	next := l.path(id) + ".new"
	content := append(fmt.Appendf(nil, "%020d\n", dropped), data...)
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return fmt.Errorf("write log of job %d: %w", id, err)
	}
	if err := os.Rename(next, l.path(id)); err != nil {
		return fmt.Errorf("write log of job %d: %w", id, err)
	}
	return nil
}

func (l *JobLogs) read(id int64) (dropped int64, data []byte, err error) {
	content, err := os.ReadFile(l.path(id))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	if len(content) < headerSize {
		return 0, nil, io.ErrUnexpectedEOF
	}
	dropped, err = strconv.ParseInt(string(content[:headerSize-1]), 10, 64)
	return dropped, content[headerSize:], err
}

// Text is the log as it is shown: at most the last protocol.LogLimit bytes, and a first line that says so when there was more.
func (l *JobLogs) Text(id int64) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	dropped, data, err := l.read(id)
	if err != nil {
		return "", fmt.Errorf("read log of job %d: %w", id, err)
	}
	if over := len(data) - protocol.LogLimit; over > 0 {
		dropped, data = dropped+int64(over), data[over:]
	}
	if dropped == 0 {
		return string(data), nil
	}
	return fmt.Sprintf("[the first %d bytes of this log are not kept]\n%s", dropped, data), nil
}

// Size is the number of bytes the log has had, dropped ones included.
func (l *JobLogs) Size(id int64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	dropped, data, err := l.read(id)
	return dropped + int64(len(data)), err
}

func (l *JobLogs) Remove(id int64) error {
	if err := os.Remove(l.path(id)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
