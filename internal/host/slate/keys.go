package slate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/retry"
)

// The kernel keeps keys for a user beyond his last process: in his keyring, in that of his sessions and in his persistent
// one, see keyrings(7), user-keyring(7) and persistent-keyring(7). Only he sees them in /proc/keys; how many he has, whoever
// holds them, all see in /proc/key-users.

const (
	// keyLimit is how long the kernel may take to free keys that nobody holds. It takes some milliseconds.
	keyLimit = 5 * time.Second
	// keyPause is between two looks at whether they are gone.
	keyPause = 5 * time.Millisecond
)

// keysAvailable reports whether this process may call for keys: a filter for system calls can forbid it, as those of
// containers do, and a kernel can be without.
func keysAvailable() error {
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
			return 0, fmt.Errorf("line %q of key-users makes no sense", line)
		}
		if owner != strconv.Itoa(uid) {
			continue
		}
		all, _, _ := strings.Cut(fields[1], "/")
		n, err := strconv.Atoi(all)
		if err != nil {
			return 0, fmt.Errorf("line %q of key-users makes no sense: %w", line, err)
		}
		return n, nil
	}
	return 0, nil
}

// keys is how many keys the user owns.
func (p Plan) keys() (int, error) {
	text, err := os.ReadFile(p.at("/proc/key-users"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // a kernel without
	}
	if err != nil {
		return 0, fmt.Errorf("count keys: %w", err)
	}
	n, err := parseKeyUsers(string(text), p.UID)
	if err != nil {
		return 0, fmt.Errorf("count keys: %w", err)
	}
	return n, nil
}

// removeKeys empties the user's keyrings and waits until he has no keys.
func (p Plan) removeKeys(ctx context.Context, log hclog.Logger) error {
	if err := keysAvailable(); err != nil {
		log.Info("the keyrings of the kernel are not available here: they are not looked at", "error", err)
		return nil
	}
	for end, tried := time.Now().Add(keyLimit), false; ; tried = true {
		n, err := p.keys()
		if err != nil || n == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("remove keys of user %s: %d are left after %s: withdraw the host", p.User, n, keyLimit)
		}
		if !tried {
			if err := p.dropKeyrings(); err != nil {
				return fmt.Errorf("remove keys of user %s: %w", p.User, err)
			}
		}
		if err := retry.Sleep(ctx, keyPause); err != nil {
			return err
		}
	}
}

// dropKeyrings empties the user's keyrings and does away with them. The keyrings of a user are those of the real uid, which
// a single thread of this process takes on for as long as it takes, and keeps its other rights.
func (p Plan) dropKeyrings() error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with this
		done <- p.dropKeyringsHere()
	}()
	return <-done
}

func (p Plan) dropKeyringsHere() error {
	// A keyring of this thread alone, through which it possesses what is linked to it.
	if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil { // without a name
		return fmt.Errorf("join a session keyring: %w", err)
	}
	keyrings, err := p.possess()
	if err != nil {
		return err
	}
	// All are emptied before the first goes: whoever asks for one of a user's keyrings makes those that are missing.
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
func (p Plan) possess() (keyrings []int, err error) {
	persistent, err := unix.KeyctlInt(unix.KEYCTL_GET_PERSISTENT, p.UID, unix.KEY_SPEC_SESSION_KEYRING, 0, 0)
	switch {
	case err == nil:
		keyrings = append(keyrings, persistent)
	case !errors.Is(err, unix.EOPNOTSUPP): // a kernel without
		return nil, fmt.Errorf("get persistent keyring: %w", err)
	}
	uid := os.Getuid()
	if err := takeRealUID(p.UID); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, takeRealUID(uid)) }()
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

// takeRealUID changes the real uid of the calling thread alone.
func takeRealUID(uid int) error {
	const unchanged = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), unchanged, unchanged); errno != 0 {
		return fmt.Errorf("take on uid %d: %w", uid, errno)
	}
	return nil
}

func (p Plan) checkKeys(d *Doubts) {
	if keysAvailable() != nil {
		return // which Clean has said
	}
	n, err := p.keys()
	if d.found(err); n > 0 {
		d.add("user %s has %d keys in the kernel: remove them with keyctl as that user", p.User, n)
	}
}
