package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// writeFile writes a file as a whole or not at all.
func writeFile(path string, data []byte) error { return writeFileMode(path, data, 0o600) }

func writeFileMode(path string, data []byte, mode fs.FileMode) error {
	return withRemedy(safefile.Replace(path, data, mode, false))
}

// withRemedy adds what a person can do about a failure to write.
func withRemedy(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: free some space on its disk", err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: make its directory writable for agentd", err)
	}
	return err
}

// removeFiles removes files. Missing ones are not an error.
func removeFiles(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// missing reports whether a file is known not to exist.
func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// readNumber reads a small file with one number in it; 0 if it has none.
func readNumber(path string) int {
	data, _ := safefile.Read(path)
	if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
		return n
	}
	return 0
}

// tailLimit is how much of a log goes into a detail, in bytes. It is more than is
// reported, since the agent removes secrets before it cuts.
const tailLimit = 8 << 10

// tailOf returns the end of what was written to a log since offset.
func tailOf(path string, offset int64) string {
	f, err := safefile.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		offset = max(offset, info.Size()-tailLimit)
	}
	data, err := io.ReadAll(io.NewSectionReader(f, offset, tailLimit))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(data), ""))
}

// StateFile keeps the agent's memory in one file.
type StateFile struct {
	Path string
	// Now is the clock for the names of damaged files.
	Now func() time.Time
}

var _ agent.State = StateFile{}

// Load reads the file. A damaged one is moved aside, so that it can be examined and is not in the way.
func (f StateFile) Load() (agent.Memory, error) {
	data, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return agent.Memory{}, nil
	}
	if err != nil {
		return agent.Memory{}, fmt.Errorf("load agent state: %w", err)
	}
	var m agent.Memory
	err = json.Unmarshal(data, &m)
	if err == nil {
		return m, nil
	}
	aside := f.Path + ".damaged-" + f.Now().UTC().Format("20060102T150405Z")
	if moveErr := os.Rename(f.Path, aside); moveErr != nil {
		return agent.Memory{}, fmt.Errorf("load agent state: %s is damaged: %w; it cannot be moved aside: %w", f.Path, err, moveErr)
	}
	return agent.Memory{}, fmt.Errorf("load agent state: %s was damaged and is now %s: %w", f.Path, aside, err)
}

// Save replaces the file.
func (f StateFile) Save(m agent.Memory) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = writeFile(f.Path, data)
	}
	if err != nil {
		return fmt.Errorf("save agent state: %w", err)
	}
	return nil
}

// ErrInUse is returned by Lock when another agent works on the host.
var ErrInUse = errors.New("another agentd works on this host")

// Lock keeps a second agent from using the host's directory, until the file is closed or this process ends.
func Lock(path string) (*os.File, error) {
	lock, free, err := lockWithin(path)
	if err == nil && !free {
		err = fmt.Errorf("%w (%s)", ErrInUse, path)
	}
	if err != nil {
		return nil, fmt.Errorf("lock host: %w", err)
	}
	return lock, nil
}

// lockTries and lockPause bound the wait for a lock that is held only for a moment: a process that is just
// being started inherits all open files, and one that was killed keeps its files until the kernel has closed
// them. Two seconds are far more than that takes, even on a busy machine.
const (
	lockTries = 2000
	lockPause = time.Millisecond
)

func lockWithin(path string) (lock *os.File, free bool, err error) {
	for range lockTries {
		if lock, free, err = safefile.TryLock(path); free || err != nil {
			break
		}
		time.Sleep(lockPause)
	}
	return lock, free, err
}

// isLocked reports whether the file is locked by a process.
func isLocked(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	switch err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("test lock %s: %w", path, err)
	}
	return false, nil
}
