package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/safefile"
)

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
