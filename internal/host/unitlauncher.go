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

	"github.com/remuda-ci/remuda/internal/host/units"
	"github.com/remuda-ci/remuda/internal/lifecycle"
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
	// Slate is what is renewed between runs.
	Slate Slate
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

// word is what a task had said when it was asked.
type word struct {
	of   begun
	text string
	at   time.Time
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
		env: []string{"HOME=" + dir, "PATH=" + usualPath, "LANG=C.UTF-8", "RUNNER_ALLOW_RUNASROOT=1"},
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

// unitWords are what the units of the tasks are called.
var unitWords = map[string]string{
	taskPrepare: "prepare", taskRegister: "register", taskListen: "runner", taskDeregister: "deregister", taskClean: "clean",
}

// runnerUnits is the pattern of the units that jobs run in.
const runnerUnits = "remuda-runner-*.service"

// RunUnits are patterns of the units of a run.
var RunUnits = []string{runnerUnits, "remuda-register-*.service", "remuda-deregister-*.service"}

// OwnUnits are the units that may be there while the host is cleaned after an
// assignment or, without one, prepared.
func OwnUnits(assignment int64) []string {
	if assignment > 0 {
		return []string{unitOf(task{name: taskClean}, begun{Assignment: assignment})}
	}
	return []string{prepareUnit}
}

const prepareUnit = "remuda-prepare.service"

// unitOf is the name of a task's unit.
func unitOf(t task, b begun) string {
	if t.name == taskPrepare {
		return prepareUnit
	}
	return fmt.Sprintf("remuda-%s-%d.service", unitWords[t.name], b.Assignment)
}

// assignmentOf is the assignment in the name of a runner's unit; 0 for no such
// name.
func assignmentOf(unit string) int64 {
	number := strings.TrimSuffix(strings.TrimPrefix(unit, "remuda-runner-"), ".service")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

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
		Name: unitOf(t, b), Description: describe(t, b), Args: c.args, Dir: c.dir, Env: c.env,
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

func describe(t task, b begun) string {
	if t.name == taskPrepare {
		return "Remuda: prepare this host"
	}
	return fmt.Sprintf("Remuda: %s for assignment %d", unitWords[t.name], b.Assignment)
}

// explained adds what the unit itself had to say.
func (l *unitLauncher) explained(ctx context.Context, unit string, since time.Time, err error) error {
	if !errors.Is(err, units.ErrNotStarted) {
		return err
	}
	said := strings.TrimSpace(units.Tail(ctx, unit, since, tailLimit/4))
	if said == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, said)
}

func (l *unitLauncher) confinement() *units.Confinement {
	return &units.Confinement{
		User: l.o.User, Groups: l.o.Groups, Limits: l.o.Limits, NoMetadata: !l.o.JobsReadMetadata, Privileged: l.o.Privileged,
	}
}

// conceal writes secrets where systemd reads them for the unit, and nobody else.
func (l *unitLauncher) conceal(t task, secrets []string) (string, error) {
	var text strings.Builder
	for _, s := range secrets {
		name, value, _ := strings.Cut(s, "=")
		if strings.ContainsAny(value, "\n\r\x00") {
			return "", fmt.Errorf("conceal %s: its value has a line break", name)
		}
		fmt.Fprintf(&text, "%s=\"%s\"\n", name, escaper.Replace(value))
	}
	path := filepath.Join(l.o.Secrets, t.name+".env")
	if err := writeFile(path, []byte(text.String())); err != nil {
		return "", fmt.Errorf("conceal secrets: %w", err)
	}
	return path, nil
}

// escaper is for double quotes in environment files (systemd.exec(5)).
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`)

// tidy removes secrets that a killed agent has left.
func (l *unitLauncher) tidy() {
	left, err := filepath.Glob(filepath.Join(l.o.Secrets, "*.env"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		l.h.log.Error("cannot remove old secrets", "error", err)
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

func (l *unitLauncher) signal(ctx context.Context, _ task, f found, sig syscall.Signal, all bool) error {
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
		if err != nil && !gone(err) {
			return 0, fmt.Errorf("list processes of %s: %w", name, err)
		}
		for _, field := range strings.Fields(string(members)) {
			if pid, err := strconv.Atoi(field); err == nil && programOf(pid) == workerProgram {
				return pid, nil
			}
		}
	}
	return 0, nil
}

// said waits in the journal, and is told when the text comes. When the unit has
// ended all is there, and is looked through once.
func (l *unitLauncher) said(ctx context.Context, t task, b begun, text []byte) bool {
	if l.watch == nil || l.watched != b {
		if l.watch != nil {
			l.watch.Stop()
		}
		l.watched, l.looked = b, false
		l.watch = units.For(unitOf(t, b), b.BegunAt, text, l.h.notify)
	}
	if !l.watch.Seen() && !l.looked && exists(t.path+".exit") {
		l.looked = true
		l.watch.Stop()
		if units.Said(ctx, unitOf(t, b), b.BegunAt, text) {
			l.watch.See()
		}
	}
	return l.watch.Seen()
}

// tailAge is for how long the end of a living task's words will do.
const tailAge = time.Second

// tail asks the journal seldom, and once for what will not change any more.
func (l *unitLauncher) tail(ctx context.Context, t task, b begun) string {
	ended := exists(t.path + ".exit")
	if w := l.told[t.name]; w.of == b && (time.Since(w.at) < tailAge && !ended || w.at.IsZero()) {
		return w.text
	}
	w := word{of: b, text: units.Tail(ctx, unitOf(t, b), b.BegunAt, tailLimit)}
	w.text = strings.TrimSpace(strings.ToValidUTF8(w.text, ""))
	if !ended {
		w.at = time.Now()
	}
	l.told[t.name] = w
	return w.text
}

func (l *unitLauncher) margin() time.Duration { return layOutLimit }

// startClean lets root do it.
func (l *unitLauncher) startClean(ctx context.Context, t task, b begun) error {
	c := l.own("clean", "--assignment", strconv.FormatInt(b.Assignment, 10))
	c.limit = l.h.o.PreRunnerLimit + cleanLimit
	return l.start(ctx, t, b, c)
}

// preparation is root's too: it furnishes the host.
func (l *unitLauncher) preparation() *command {
	c := l.own("prepare")
	c.limit = l.h.o.PreRunnerLimit + l.margin()
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
