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
	// User is whom jobs run as. UID and GID are its own, Home its home.
	User     string
	UID, GID int
	Home     string
	// Groups are those that it gets beside its own.
	Groups []string
	Limits units.Limits
	// Privileged lets jobs become root.
	Privileged bool
	// JobsReadMetadata lets them read the instance metadata, and with it the
	// host's credentials.
	JobsReadMetadata bool
	// Program is the absolute path of agentd, which the units run for what is
	// root's to do; Config is its configuration.
	Program, Config string
	// Secrets is a directory in memory that is root's alone.
	Secrets string
	// Reset resets the machine between runs.
	Reset Reset
}

// unitLauncher runs each task as a transient unit.
type unitLauncher struct {
	h       *Host
	o       Systemd
	manager *units.Manager
	watch   *units.Watch
	watched begun
	looked  bool            // through all that the watched one has said
	told    map[string]word // by task
}

var _ launcher = (*unitLauncher)(nil)

func newUnitLauncher(h *Host, o Systemd) *unitLauncher {
	return &unitLauncher{h: h, o: o, manager: units.New(h.notify), told: map[string]word{}}
}

// registered is root's own copy of what the registration wrote. The runner's is in
// the hands of jobs, and a removal token, which is good for every runner of its
// scope, must not be.
func (l *unitLauncher) registered() string { return l.h.path(rootRunner) }

// rootRunner is a runner that no job can change, and that runs no job.
const rootRunner = "registered"

// removal runs where no job could write, as root, whose environment none can read.
func (l *unitLauncher) removal() command {
	dir := l.registered()
	return command{
		args: []string{filepath.Join(dir, "config.sh"), "remove", "--unattended"}, dir: dir, root: true,
		env: append(l.h.environment(), "HOME="+dir, "RUNNER_ALLOW_RUNASROOT=1"), // the last of a name counts
	}
}

// end: the units go with the machine.
func (l *unitLauncher) end() error { return nil }

func (l *unitLauncher) pace() time.Duration { return patience }

// furnish: all else is made by the preparation, which is root with all its
// powers.
func (l *unitLauncher) furnish() error {
	if err := l.h.makeDirs("hooks", "job"); err != nil {
		return err
	}
	if err := os.MkdirAll(l.h.path("state/tasks"), 0o700); err != nil { // and state itself
		return fmt.Errorf("make directory: %w", err)
	}
	return l.h.writeHooks()
}

// shield: the distribution of an image, and so the runner's directory, is closed
// to all but its user and root.
func (l *unitLauncher) shield() error { return nil }

// noteExit writes down how a unit ended: NAME.exit. It must do without agentd,
// which may be in the middle of being replaced.
const noteExit = `if [ "$SERVICE_RESULT" = timeout ]; then code=overdue; else code=$EXIT_STATUS; fi
if [ "$code" = 0 ] && [ -n "$3" ]; then cp -P -- "$2/.runner" "$2"/.credentials* "$3/" || code=1; fi
echo "$code" >"$1.new" && mv "$1.new" "$1"`

func (l *unitLauncher) start(ctx context.Context, t task, b begun, c command) error {
	if err := t.intend(b); err != nil {
		return err
	}
	u := units.Unit{
		Name: unitOf(t, b), Description: describe(t, b), Args: c.args, Dir: c.dir, Env: lastOfEach(c.env),
		Last: l.lastOf(t, b), Identifier: "remuda-" + unitWords[t.name],
		Limit: c.limit,
	}
	if !c.root {
		u.Confined = l.confinement()
	}
	if t.name == taskListen && !l.o.JobsReadMetadata {
		u.Check = []string{l.o.Program, "check-metadata"}
	}
	if len(c.secrets) > 0 {
		path, err := l.conceal(t, c.secrets)
		if err != nil {
			return err
		}
		defer os.Remove(path)
		u.EnvFile = path
	}
	if err := l.manager.Start(ctx, u); err != nil {
		return l.explained(ctx, u.Name, b.BegunAt, err)
	}
	b.Started = true
	return t.write(b)
}

// lastOf notes the exit of a task. A registration with a token is copied too, while
// no job has been near it.
func (l *unitLauncher) lastOf(t task, b begun) []string {
	args := []string{"/bin/sh", "-c", noteExit, "note-exit", t.path + ".exit", "", ""}
	if t.name == taskRegister && b.Kind == lifecycle.RegistrationToken {
		args[5], args[6] = l.h.path("runner"), l.registered()
	}
	return args
}

func (l *unitLauncher) confinement() *units.Confinement {
	return &units.Confinement{
		User: l.o.User, Groups: l.o.Groups, Limits: l.o.Limits, NoMetadata: !l.o.JobsReadMetadata, Privileged: l.o.Privileged,
	}
}

func (l *unitLauncher) find(ctx context.Context, t task, b begun) (found, error) {
	// What has written how it ended has, and nothing of it is left.
	if b.BootID != l.h.bootID || exists(t.path+".exit") {
		return found{}, nil
	}
	name := unitOf(t, b)
	s, err := l.manager.State(ctx, name)
	if err != nil {
		return found{}, err
	}
	f := found{running: s.Running, pid: s.MainPID, ended: s.Failed, code: s.Code}
	switch {
	case s.Running:
		f.handle.unit = name
	case !s.Failed && b.Started:
		f.ended, f.code = true, codeUnknown
	}
	return f, nil
}

// adopt: systemd sees every end, and a unit in its last moments is not adopted.
func (l *unitLauncher) adopt(ctx context.Context, unseen bool) (*begun, found, error) {
	if unseen {
		return nil, found{}, nil
	}
	names, err := l.manager.Running(ctx, runnerUnits)
	if err != nil || len(names) == 0 {
		return nil, found{}, err
	}
	name := names[0]
	s, err := l.manager.State(ctx, name)
	if err != nil || s.MainPID == 0 {
		return nil, found{}, err
	}
	at, err := l.manager.StartedAt(ctx, name)
	if err != nil {
		return nil, found{}, err
	}
	b := begun{Assignment: assignmentOf(name), Attempt: 1, BootID: l.h.bootID, BegunAt: at}
	return &b, found{running: true, pid: s.MainPID, handle: handle{unit: name}}, nil
}

func (l *unitLauncher) signal(ctx context.Context, f found, sig syscall.Signal, all bool) error {
	if f.handle.unit == "" {
		return nil
	}
	return l.manager.Signal(ctx, f.handle.unit, sig, all)
}

// groupRoot is where control groups are.
const groupRoot = "/sys/fs/cgroup"

func (l *unitLauncher) worker(ctx context.Context) (int, error) {
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

// startClean lets root do it.
func (l *unitLauncher) startClean(ctx context.Context, t task, b begun) error {
	c := l.own("clean", "--assignment", strconv.FormatInt(b.Assignment, 10))
	c.limit = l.h.o.PreRunnerLimit + cleanLimit
	return l.start(ctx, t, b, c)
}

// preparation is root's too: it furnishes the host.
func (l *unitLauncher) preparation() *command {
	c := l.own("prepare")
	c.limit = l.h.o.PreRunnerLimit + layOutLimit
	return &c
}

const (
	// cleanLimit is for all but the pre-runner script. A release has 120 s, and a
	// host that takes longer is ended.
	cleanLimit = 3 * time.Minute
	// layOutLimit is for what comes before and after the pre-runner script.
	layOutLimit = time.Minute
)

// own is a command of agentd itself, as root.
func (l *unitLauncher) own(what string, args ...string) command {
	return command{
		args: append([]string{l.o.Program, what, "--config", l.o.Config}, args...), dir: "/", root: true,
		env: []string{"PATH=" + usualPath},
	}
}
