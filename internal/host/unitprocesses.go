package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/host/units"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/proc"
)

// Systemd says how the tasks of a host run as units of systemd.
type Systemd struct {
	// User is the user that jobs run as, with its uid, gid and home directory.
	User     string
	UID, GID int
	Home     string
	// Groups are its supplementary groups.
	Groups []string
	Limits units.Limits
	// Privileged lets jobs become root.
	Privileged bool
	// JobsReadMetadata lets them read the instance metadata, and with it the host's credentials.
	JobsReadMetadata bool
	// Program is the absolute path of agentd, which units run as root; Config is that of its configuration.
	Program, Config string
	// Secrets is a directory in memory that only root can read.
	Secrets string
	// Reset resets the machine between runs.
	Reset Reset
}

// unitProcesses runs each task as a transient unit.
type unitProcesses struct {
	h            *Host
	o            Systemd
	manager      *units.Manager
	watch        *units.Watch
	watchedStart startRecord
	searched     bool                 // through the whole output of the watched unit
	tails        map[string]tailEntry // by task
}

var _ processes = (*unitProcesses)(nil)

func newUnitProcesses(h *Host, o Systemd) *unitProcesses {
	return &unitProcesses{h: h, o: o, manager: units.New(h.notify), tails: map[string]tailEntry{}}
}

// endAll does nothing: the units end with the machine.
func (l *unitProcesses) endAll() error { return nil }

func (l *unitProcesses) pollInterval() time.Duration { return pollUnits }

// noteExit records how a unit ended, in NAME.exit. It must work without agentd, whose
// package may just be being upgraded.
const noteExit = `if [ "$SERVICE_RESULT" = timeout ]; then code=overdue; else code=$EXIT_STATUS; fi
if [ "$code" = 0 ] && [ -n "$3" ]; then cp -P -- "$2/.runner" "$2"/.credentials* "$3/" || code=1; fi
echo "$code" >"$1.new" && mv "$1.new" "$1"`

func (l *unitProcesses) start(ctx context.Context, t task, b startRecord, c command) error {
	if err := t.recordStart(b); err != nil {
		return err
	}
	u := units.Unit{
		Name: unitName(t, b), Description: unitDescription(t, b), Args: c.args, Dir: c.dir, Env: lastOfEach(c.env),
		Last: l.exitCommand(t, b), Identifier: "remuda-" + t.unitKind(),
		Limit: c.limit,
	}
	if !c.root {
		u.Confined = l.confinement()
	}
	if t.name == taskListen && !l.o.JobsReadMetadata {
		u.Check = []string{l.o.Program, "check-metadata"}
	}
	if len(c.secrets) > 0 {
		path, err := l.writeSecrets(t, c.secrets)
		if err != nil {
			return err
		}
		defer os.Remove(path)
		u.EnvFile = path
	}
	if err := l.manager.Start(ctx, u); err != nil {
		return l.withUnitOutput(ctx, u.Name, b.BegunAt, err)
	}
	b.Started = true
	return t.writeStart(b)
}

// exitCommand records the exit of a task. It also copies a registration with a token, at a
// time when no job can have touched it.
func (l *unitProcesses) exitCommand(t task, b startRecord) []string {
	args := []string{"/bin/sh", "-c", noteExit, "note-exit", t.path + ".exit", "", ""}
	if t.name == taskRegister && b.Kind == lifecycle.RegistrationToken {
		args[5], args[6] = l.h.path("runner"), l.h.layout.registrationDir()
	}
	return args
}

func (l *unitProcesses) confinement() *units.Confinement {
	return &units.Confinement{
		User: l.o.User, Groups: l.o.Groups, Limits: l.o.Limits, NoMetadata: !l.o.JobsReadMetadata, Privileged: l.o.Privileged,
	}
}

func (l *unitProcesses) find(ctx context.Context, t task, b startRecord) (taskProcess, error) {
	// A unit that has recorded its exit has ended, and nothing of it is left.
	if b.BootID != l.h.bootID || exists(t.path+".exit") {
		return taskProcess{}, nil
	}
	name := unitName(t, b)
	s, err := l.manager.State(ctx, name)
	if err != nil {
		return taskProcess{}, err
	}
	f := taskProcess{running: s.Running, pid: s.MainPID, ended: s.Failed, code: s.Code}
	switch {
	case s.Running:
		f.handle.unit = name
	case !s.Failed && b.Started:
		f.ended, f.code = true, codeUnknown
	}
	return f, nil
}

// adopt ignores an unseen end: systemd sees every end, and a unit in its last moments is not adopted.
func (l *unitProcesses) adopt(ctx context.Context, unseen bool) (*startRecord, taskProcess, error) {
	if unseen {
		return nil, taskProcess{}, nil
	}
	names, err := l.manager.Running(ctx, runnerUnits)
	if err != nil || len(names) == 0 {
		return nil, taskProcess{}, err
	}
	name := names[0]
	s, err := l.manager.State(ctx, name)
	if err != nil || s.MainPID == 0 {
		return nil, taskProcess{}, err
	}
	at, err := l.manager.StartedAt(ctx, name)
	if err != nil {
		return nil, taskProcess{}, err
	}
	b := startRecord{Assignment: assignmentOf(name), Attempt: 1, BootID: l.h.bootID, BegunAt: at}
	return &b, taskProcess{running: true, pid: s.MainPID, handle: handle{unit: name}}, nil
}

func (l *unitProcesses) signal(ctx context.Context, f taskProcess, sig syscall.Signal, all bool) error {
	if f.handle.unit == "" {
		return nil
	}
	return l.manager.Signal(ctx, f.handle.unit, sig, all)
}

// groupRoot is where control groups are mounted.
const groupRoot = "/sys/fs/cgroup"

func (l *unitProcesses) findWorker(ctx context.Context) (int, error) {
	names, err := l.manager.Running(ctx, runnerUnits)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		members, err := os.ReadFile(filepath.Join(groupRoot, units.Slice, name, "cgroup.procs"))
		if err != nil && !proc.Gone(err) {
			return 0, fmt.Errorf("list processes of %s: %w", name, err)
		}
		for _, field := range strings.Fields(string(members)) {
			if pid, err := strconv.Atoi(field); err == nil && proc.Default.Program(pid) == workerProgram {
				return pid, nil
			}
		}
	}
	return 0, nil
}
