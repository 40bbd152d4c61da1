package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/host/jobline"
	"github.com/remuda-ci/remuda/internal/host/units"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/proc"
)

// unitLayout is the layout of a host whose tasks are units. What needs rights over the runner's user is done by root, in
// units of their own: see PrepareNow and CleanNow.
type unitLayout struct {
	h         *Host
	o         Systemd
	processes *unitProcesses
}

var _ layout = (*unitLayout)(nil)

// environment has only what systemd does not derive from the user.
func (l *unitLayout) environment() []string { return []string{"HOME=" + l.o.Home, "PATH=" + usualPath} }

// registrationDir is root's own copy of what the registration wrote. Jobs can write to
// the runner's directory. A removal token is valid for every runner of its scope, so it
// must not be used where a job can read it.
func (l *unitLayout) registrationDir() string { return l.h.path(rootRunner) }

// rootRunner is a copy of the runner that no job can change and that runs no job.
const rootRunner = "registered"

// removeCommand runs where no job could write, and as root, so that no job can read its environment.
func (l *unitLayout) removeCommand() command {
	dir := l.registrationDir()
	return command{
		args: []string{filepath.Join(dir, "config.sh"), "remove", "--unattended"}, dir: dir, root: true,
		env: append(l.h.environment(), "HOME="+dir, "RUNNER_ALLOW_RUNASROOT=1"), // the last of a name counts
	}
}

// setUp makes only what the agent has the right to make. The rest is made by the
// preparation, which runs as root with all capabilities.
func (l *unitLayout) setUp() error {
	if err := l.h.makeDirs("hooks", "job"); err != nil {
		return err
	}
	if err := os.MkdirAll(l.h.path("state/tasks"), 0o700); err != nil { // and state itself
		return fmt.Errorf("make directory: %w", err)
	}
	return l.h.writeHooks()
}

// protectCredentials has nothing to do: the distribution of an image, and with it the
// runner's directory, is closed to all users except the runner's and root.
func (l *unitLayout) protectCredentials() error { return nil }

// startClean starts the clean-up as root, in a unit of its own.
func (l *unitLayout) startClean(ctx context.Context, t task, b startRecord) error {
	c := l.agentdCommand("clean", "--assignment", strconv.FormatInt(b.Assignment, 10))
	c.limit = l.h.o.PreRunnerLimit + cleanLimit
	return l.processes.start(ctx, t, b, c)
}

// prepareCommand also runs as root: it sets up the host.
func (l *unitLayout) prepareCommand() *command {
	c := l.agentdCommand("prepare")
	c.limit = l.h.o.PreRunnerLimit + layOutLimit
	return &c
}

const (
	// cleanLimit is for everything except the pre-runner script. A release has 120 s,
	// and a host that takes longer is ended.
	cleanLimit = 3 * time.Minute
	// layOutLimit is for what comes before and after the pre-runner script.
	layOutLimit = time.Minute
)

// agentdCommand is a command of agentd itself, as root.
func (l *unitLayout) agentdCommand(what string, args ...string) command {
	return command{
		args: append([]string{l.h.o.Program, what, "--config", l.h.o.Config}, args...), dir: "/", root: true,
		env: []string{"PATH=" + usualPath},
	}
}

// unitKind is the part of the unit names that stands for a task.
func (t task) unitKind() string {
	if t.name == taskListen {
		return "runner"
	}
	return t.name
}

// runnerUnits is the pattern of the units that jobs run in.
const runnerUnits = "remuda-runner-*.service"

// RunUnits are patterns of the units of a run.
var RunUnits = []string{runnerUnits, "remuda-register-*.service", "remuda-deregister-*.service"}

// OwnUnits are the units that may run while the host is cleaned after an assignment or,
// with assignment 0, prepared.
func OwnUnits(assignment int64) []string {
	if assignment > 0 {
		return []string{unitName(task{name: taskClean}, startRecord{Assignment: assignment})}
	}
	return []string{prepareUnit}
}

const prepareUnit = "remuda-prepare.service"

// unitOf is the name of a task's unit.
func unitName(t task, b startRecord) string {
	if t.name == taskPrepare {
		return prepareUnit
	}
	return fmt.Sprintf("remuda-%s-%d.service", t.unitKind(), b.Assignment)
}

// assignmentOf returns the assignment in the name of a runner's unit; 0 if it is not one.
func assignmentOf(unit string) int64 {
	number := strings.TrimSuffix(strings.TrimPrefix(unit, "remuda-runner-"), ".service")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func unitDescription(t task, b startRecord) string {
	if t.name == taskPrepare {
		return "Remuda: prepare this host"
	}
	return fmt.Sprintf("Remuda: %s for assignment %d", t.unitKind(), b.Assignment)
}

// tailEntry is the end of the output of a task at a certain time.
type tailEntry struct {
	start startRecord
	text  string
	at    time.Time
}

// hasWritten watches the journal for the text. Once the unit has ended, its output is
// complete and is searched once.
func (l *unitProcesses) hasWritten(ctx context.Context, t task, b startRecord, text []byte) bool {
	if l.watch == nil || l.watchedStart != b {
		if l.watch != nil {
			l.watch.Stop()
		}
		l.watchedStart, l.searched = b, false
		l.watch = units.For(unitName(t, b), b.BegunAt, text, l.h.notify)
	}
	if !l.watch.Seen() && !l.searched && exists(t.path+".exit") {
		l.searched = true
		l.watch.Stop()
		if units.Said(ctx, unitName(t, b), b.BegunAt, text) {
			l.watch.See()
		}
	}
	return l.watch.Seen()
}

// taken follows the journal of a listener for as long as it runs.
func (l *unitProcesses) taken(_ context.Context, t task, b *startRecord) jobline.Job {
	if l.follow != nil && (b == nil || l.followed != *b) {
		l.follow.Stop()
		l.follow = nil
	}
	if b == nil {
		return jobline.Job{}
	}
	if l.follow == nil {
		l.followed, l.jobs = *b, &jobline.Reader{}
		l.follow = units.Follow(unitName(t, *b), b.BegunAt, l.jobs, l.h.notify)
	}
	return l.jobs.Job()
}

// tailAge is for how long the tail of a running task is reused.
const tailAge = time.Second

// tail reads the journal at most once in tailAge, and once for a task that has ended.
func (l *unitProcesses) tail(ctx context.Context, t task, b startRecord) string {
	ended := exists(t.path + ".exit")
	if w := l.tails[t.name]; w.start == b && (time.Since(w.at) < tailAge && !ended || w.at.IsZero()) {
		return w.text
	}
	w := tailEntry{start: b, text: units.Tail(ctx, unitName(t, b), b.BegunAt, tailLimit)}
	w.text = strings.TrimSpace(strings.ToValidUTF8(w.text, ""))
	if !ended {
		w.at = time.Now()
	}
	l.tails[t.name] = w
	return w.text
}

// withUnitOutput adds the output of the unit to an error of its start.
func (l *unitProcesses) withUnitOutput(ctx context.Context, unit string, since time.Time, err error) error {
	if !errors.Is(err, units.ErrNotStarted) {
		return err
	}
	said := strings.TrimSpace(units.Tail(ctx, unit, since, tailLimit/4))
	if said == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, said)
}

// writeSecrets writes secrets to a file that systemd reads for the unit and that only root can read.
func (l *unitProcesses) writeSecrets(t task, secrets []string) (string, error) {
	var text strings.Builder
	for _, s := range secrets {
		name, value, _ := strings.Cut(s, "=")
		if strings.ContainsAny(value, "\n\r\x00") {
			return "", fmt.Errorf("write secret %s: its value has a line break", name)
		}
		fmt.Fprintf(&text, "%s=\"%s\"\n", name, escaper.Replace(value))
	}
	path := filepath.Join(l.o.Secrets, t.name+".env")
	if err := writeFile(path, []byte(text.String())); err != nil {
		return "", fmt.Errorf("write secrets: %w", err)
	}
	return path, nil
}

// escaper is for double quotes in environment files (systemd.exec(5)).
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`)

// removeSecrets removes the files of secrets that a killed agent has left.
func (l *unitProcesses) removeSecrets() {
	left, err := filepath.Glob(filepath.Join(l.o.Secrets, "*.env"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		l.h.log.Error("cannot remove old secrets", logkey.Error, err)
	}
}

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
	searched     bool            // through the whole output of the watched unit
	jobs         *jobline.Reader // of the followed unit
	follow       *units.Watch
	followed     startRecord
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
		Before: c.before, Last: l.exitCommand(t, b), Identifier: "remuda-" + t.unitKind(),
		Limit: c.limit,
	}
	if !c.root {
		u.Confined = l.confinement()
	}
	if t.name == taskListen {
		u.Interrupt = listenerStopLimit
		if !l.o.JobsReadMetadata {
			u.Check = []string{l.h.o.Program, "check-metadata"}
		}
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

// listenerStopLimit is for a listener that was asked to end: it ends its worker, which uploads its log and completes the job, and closes
// its session. actions/runner gives each of the two 30 s (2.336, src/Runner.Common/Constants.cs 89 and
// src/Runner.Listener/BrokerMessageListener.cs 249). A listener that is killed leaves its job hanging on GitHub until the lock runs out.
const listenerStopLimit = 45 * time.Second

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
	at, err := l.manager.BegunAt(ctx, name)
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
