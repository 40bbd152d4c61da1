package dev

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes the lock of a file, if it is free. It is released by closing
// the file, and by the kernel when its holder dies, however that happens.
func lockFile(path string) (lock *os.File, free bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, true, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, false, nil
	}
	return nil, false, err
}
