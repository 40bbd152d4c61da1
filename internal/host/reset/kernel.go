package reset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/host/reset/keyring"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/retry"
)

// ipcKind is one of the three kinds of System V IPC: its file in /proc/sysvipc and the call that removes one.
type ipcKind struct {
	name, id string
	remove   func(id int) error
}

// ipcRemove is IPC_RMID of linux/ipc.h.
const ipcRemove = 0

var ipcKinds = []ipcKind{
	{"shm", "shmid", func(id int) error { return call(unix.SYS_SHMCTL, id, ipcRemove, 0) }},
	{"msg", "msqid", func(id int) error { return call(unix.SYS_MSGCTL, id, ipcRemove, 0) }},
	{"sem", "semid", func(id int) error { return call(unix.SYS_SEMCTL, id, 0, ipcRemove) }},
}

func call(trap uintptr, a, b, c int) error {
	if _, _, errno := unix.Syscall(trap, uintptr(a), uintptr(b), uintptr(c)); errno != 0 {
		return errno
	}
	return nil
}

// parseIPC returns the ids in a file of /proc/sysvipc that the user owns or created: see proc_sysvipc(5).
func parseIPC(text, id string, uid int) ([]int, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	header := strings.Fields(lines[0])
	idAt, uidAt, cuidAt := slices.Index(header, id), slices.Index(header, "uid"), slices.Index(header, "cuid")
	if idAt < 0 || uidAt < 0 || cuidAt < 0 {
		return nil, fmt.Errorf("malformed heading %q", lines[0])
	}
	var ids []int
	for _, line := range lines[1:] {
		fields := strings.Fields(line)
		if len(fields) != len(header) {
			return nil, fmt.Errorf("malformed line %q", line)
		}
		owner, err1 := strconv.Atoi(fields[uidAt])
		maker, err2 := strconv.Atoi(fields[cuidAt])
		n, err3 := strconv.Atoi(fields[idAt])
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("malformed line %q: %w", line, err)
		}
		if owner == uid || maker == uid {
			ids = append(ids, n)
		}
	}
	return ids, nil
}

// ipcObjects returns the ids of the user's System V IPC objects of a kind. A kernel may have been built without them.
func (p Plan) ipcObjects(kind ipcKind) ([]int, error) {
	text, err := os.ReadFile(p.at("/proc/sysvipc/" + kind.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []int
	if err == nil {
		ids, err = parseIPC(string(text), kind.id, p.UID)
	}
	if err != nil {
		return nil, fmt.Errorf("list IPC %s: %w", kind.name, err)
	}
	return ids, nil
}

// removeIPC removes the user's System V IPC objects. POSIX message queues are files: see leftovers.
func (p Plan) removeIPC() error {
	for _, kind := range ipcKinds {
		ids, err := p.ipcObjects(kind)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := kind.remove(id); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) {
				return fmt.Errorf("remove IPC %s %d: %w", kind.name, id, err)
			}
		}
	}
	return nil
}

const (
	// keyLimit is how long the kernel may take to free keys that nothing holds. It takes some milliseconds.
	keyLimit = 5 * time.Second
	// keyPause is the time between two looks at whether they are gone.
	keyPause = 5 * time.Millisecond
)

// removeKeys drops the user's keyrings and waits until the kernel has freed all keys.
func (p Plan) removeKeys(ctx context.Context, log hclog.Logger) error {
	if err := keyring.Available(); err != nil {
		log.Info("kernel keyrings are not available and not checked", logkey.Error, err)
		return nil
	}
	for end, tried := time.Now().Add(keyLimit), false; ; tried = true {
		n, err := keyring.Count(p.at("/proc"), p.UID)
		if err != nil || n == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("remove keys of user %s: %d are left after %s: withdraw the host", p.User, n, keyLimit)
		}
		if !tried {
			if err := keyring.Drop(p.UID); err != nil {
				return fmt.Errorf("remove keys of user %s: %w", p.User, err)
			}
		}
		if err := retry.Sleep(ctx, keyPause); err != nil {
			return err
		}
	}
}

func (p Plan) checkKeys(d *Findings) {
	if keyring.Available() != nil {
		return // Run has logged that
	}
	n, err := keyring.Count(p.at("/proc"), p.UID)
	if d.addErr(err); n > 0 {
		d.add("user %s has %d keys in the kernel: remove them with keyctl as that user", p.User, n)
	}
}
