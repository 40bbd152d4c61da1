package slate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// killLimit is how long processes may take to die of SIGKILL. It is far more than any needs that is not stuck in
	// the kernel.
	killLimit = 10 * time.Second
	// killPause is between looks at the processes that are being killed.
	killPause = 5 * time.Millisecond
	// quietLooks is how many looks in a row must find nothing: a process can slip past one, by being born behind it to a
	// parent that dies ahead of it.
	quietLooks = 2
)

// process is what counts of /proc/PID/status.
type process struct {
	pid  int
	name string
	// uids are the real, effective, saved and file system uid.
	uids [4]int
	// dead is said of one that has ended and is not waited for; not of one of whose threads only the first has.
	dead bool
}

var errStatus = errors.New("a process status that makes no sense")

// parseStatus reads /proc/PID/status: see proc_pid_status(5). The name is the process's own choice, without newlines.
func parseStatus(text string) (process, error) {
	var p process
	threads, found := 0, 0
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimSpace(value)
		var err error
		switch key {
		case "Name":
			p.name = value
		case "State":
			p.dead = strings.HasPrefix(value, "Z") || strings.HasPrefix(value, "X")
		case "Threads":
			threads, err = strconv.Atoi(value)
		case "Uid":
			found++
			_, err = fmt.Sscan(value, &p.uids[0], &p.uids[1], &p.uids[2], &p.uids[3])
		}
		if err != nil {
			return process{}, fmt.Errorf("%w: %q", errStatus, line)
		}
	}
	if found != 1 {
		return process{}, errStatus
	}
	p.dead = p.dead && threads <= 1
	return p, nil
}

// belongsTo reports whether the user could do anything through the process. The uid for files alone counts too.
func (p process) belongsTo(uid int) bool {
	return !p.dead && (p.uids[0] == uid || p.uids[1] == uid || p.uids[2] == uid || p.uids[3] == uid)
}

// processes are the living ones of the user.
func (p Plan) processes() ([]process, error) {
	proc, err := os.Open(p.at("/proc"))
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(proc.Name(), name, "status"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at process %d: %w", pid, err)
		}
		one, err := parseStatus(string(text))
		if err != nil {
			return nil, fmt.Errorf("look at process %d: %w", pid, err)
		}
		if one.pid = pid; one.belongsTo(p.UID) {
			found = append(found, one)
		}
	}
	return found, nil
}

// killProcesses kills every process of the user until none is left.
func (p Plan) killProcesses(ctx context.Context) error {
	end := time.Now().Add(killLimit)
	for quiet := 0; ; {
		found, err := p.processes()
		if err != nil {
			return err
		}
		if len(found) == 0 {
			if quiet++; quiet >= quietLooks {
				return nil
			}
			continue
		}
		quiet = 0
		if time.Now().After(end) {
			return fmt.Errorf("kill processes of %s: %d are left after %s, the first is %d (%q): withdraw the host",
				p.User, len(found), killLimit, found[0].pid, found[0].name)
		}
		p.killAtOnce(ctx)
		for _, one := range found {
			if err := syscall.Kill(one.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d (%q): %w", one.pid, one.name, err)
			}
		}
		if err := pause(ctx, killPause); err != nil {
			return err
		}
	}
}

// killAtOnce lets the kernel kill all that the user may kill, which a process that forks faster than it is found cannot
// escape. The killer is the user's and may be killed by one of them first, or not be born for want of room: then the next
// round tries again, and what it does not reach is killed one by one.
func (p Plan) killAtOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "kill -KILL -1")
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(p.UID), Gid: uint32(p.GID)}}
	_ = cmd.Run()
}

// pause waits, unless the whole is over.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
