// Package keyring counts and drops the keys that the kernel keeps for a user.
//
// The kernel keeps them beyond the user's last process: in the user keyring, in those of the user's sessions and in the
// persistent one, see keyrings(7), user-keyring(7) and persistent-keyring(7). Only the user sees them in /proc/keys. How
// many there are, whatever holds them, everybody sees in /proc/key-users.
package keyring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Available returns nil if this process may make calls for keys. A filter of system calls can forbid them, as those of
// containers do, and a kernel can be built without them.
func Available() error {
	_, err := unix.KeyctlInt(unix.KEYCTL_DESCRIBE, 0, 0, 0, 0) // of no key: EINVAL
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

// parseKeyUsers returns how many keys the user owns, from /proc/key-users: see proc_key-users(5).
func parseKeyUsers(text string, uid int) (int, error) {
	for line := range strings.Lines(text) {
		owner, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 {
			return 0, fmt.Errorf("line %q of key-users is malformed", line)
		}
		if owner != strconv.Itoa(uid) {
			continue
		}
		all, _, _ := strings.Cut(fields[1], "/")
		n, err := strconv.Atoi(all)
		if err != nil {
			return 0, fmt.Errorf("line %q of key-users is malformed: %w", line, err)
		}
		return n, nil
	}
	return 0, nil
}

// Count returns how many keys the user owns, from the key-users file of a directory like /proc.
func Count(proc string, uid int) (int, error) {
	text, err := os.ReadFile(filepath.Join(proc, "key-users"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // a kernel without
	}
	if err != nil {
		return 0, fmt.Errorf("count keys: %w", err)
	}
	n, err := parseKeyUsers(string(text), uid)
	if err != nil {
		return 0, fmt.Errorf("count keys: %w", err)
	}
	return n, nil
}

// Drop empties the user's keyrings and invalidates them. The kernel frees their keys some milliseconds later.
//
// The keyrings of a user are those of the real uid of the caller. A single thread of this process assumes it for that
// long, and keeps its other rights.
func Drop(uid int) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with this
		done <- dropHere(uid)
	}()
	return <-done
}

func dropHere(uid int) error {
	// This thread gets a session keyring of its own. It possesses all that is linked to that.
	if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil { // without a name
		return fmt.Errorf("join a session keyring: %w", err)
	}
	keyrings, err := possess(uid)
	if err != nil {
		return err
	}
	// All are emptied before the first is invalidated: to ask for one of a user's keyrings creates those that are missing.
	for _, call := range []int{unix.KEYCTL_CLEAR, unix.KEYCTL_INVALIDATE} {
		for _, keyring := range keyrings {
			if _, err := unix.KeyctlInt(call, keyring, 0, 0, 0); err != nil {
				return fmt.Errorf("drop keyring %d: %w", keyring, err)
			}
		}
	}
	return nil
}

// possess links the user's keyrings to the session keyring, and returns their serial numbers.
func possess(uid int) (keyrings []int, err error) {
	persistent, err := unix.KeyctlInt(unix.KEYCTL_GET_PERSISTENT, uid, unix.KEY_SPEC_SESSION_KEYRING, 0, 0)
	switch {
	case err == nil:
		keyrings = append(keyrings, persistent)
	case !errors.Is(err, unix.EOPNOTSUPP): // else a kernel without
		return nil, fmt.Errorf("get persistent keyring: %w", err)
	}
	before := os.Getuid()
	if err := setRealUID(uid); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, setRealUID(before)) }()
	for _, special := range []int{unix.KEY_SPEC_USER_SESSION_KEYRING, unix.KEY_SPEC_USER_KEYRING} {
		keyring, err := unix.KeyctlInt(unix.KEYCTL_GET_KEYRING_ID, special, 0, 0, 0)
		if err == nil {
			_, err = unix.KeyctlInt(unix.KEYCTL_LINK, special, unix.KEY_SPEC_SESSION_KEYRING, 0, 0)
		}
		if err != nil {
			return nil, fmt.Errorf("get keyring %d: %w", special, err)
		}
		keyrings = append(keyrings, keyring)
	}
	return keyrings, nil
}

// setRealUID changes the real uid of the calling thread alone.
func setRealUID(uid int) error {
	const unchanged = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), unchanged, unchanged); errno != 0 {
		return fmt.Errorf("assume uid %d: %w", uid, errno)
	}
	return nil
}
