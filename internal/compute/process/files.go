package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/retry"
)

// maxFile bounds what is read of a file that a host could have written, in bytes.
const maxFile = 1 << 20

// readFile reads a small regular file and follows no link: the files of a host are within reach of its jobs.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("read %s: it is no regular file of at most %d bytes", path, maxFile)
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// writeFile writes a file as a whole or not at all.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// lockLook is how often a lock that another holds is tried again. Locks are held for some milliseconds.
const lockLook = 5 * time.Millisecond

// lockFile waits for the lock. It is released by closing the file, and by the kernel when its holder dies.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	for {
		f, ok, err := tryLockFile(path)
		if err != nil || ok {
			return f, err
		}
		if err := retry.Sleep(ctx, lockLook); err != nil {
			return nil, fmt.Errorf("wait for lock %s: %w", path, err)
		}
	}
}

// tryLockFile takes the lock if it is free.
func tryLockFile(path string) (*os.File, bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, true, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("lock %s: %w", path, err)
}
