// Package host is the machine that the agent works on: the runner, its configuration, the pre-runner script and the
// clean-up. They all outlive the agent.
//
// Each of them is a task. processes starts tasks and finds them again, as units of systemd (Options.Systemd) or, in the
// embedded default, in process groups of the agent's own user. layout says what is where on the host for either.
//
// Below the host's directory are
//
//	runner/   the runner: config.sh, bin/Runner.Listener; renewed by Clean
//	work/     of the jobs; renewed by Clean
//	hooks/    the job hooks, written by the agent
//	job/      what hooks and agent tell each other; see hooks
//	caches/   directories of jobs that outlive a run; see package cachestore
//	state/    agent.json, the agent's memory
//	state/tasks/   what was started and how it ended; see task
//	home/ tmp/ logs/   where there are no units: with them jobs have the home of
//	          their user and the machine's /tmp, and logs are in the journal
//
// Everything that Observe returns comes from there, from systemd and from /proc, so an agent that was killed finds all of
// it again.
package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host/archive"
	"github.com/remuda-ci/remuda/internal/host/cachestore"
	"github.com/remuda-ci/remuda/internal/host/dockerstore"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/proc"
	"github.com/remuda-ci/remuda/internal/tree"
)

// InstanceIDVariable is the environment variable that marks the processes of a host. The
// compute adapter finds them by it.
const InstanceIDVariable = "REMUDA_INSTANCE_ID"

// Options configure a host.
type Options struct {
	// InstanceID may be empty until SetIdentity.
	InstanceID string
	// Dir is the host's directory. It must be absolute.
	Dir string
	// Program is the absolute path of agentd. The job-started hook runs it as the runner's user, and units as root.
	Program string
	// Distribution is the directory of an unpacked runner, which is linked or copied.
	Distribution string
	// PreRunner is the path of the pre-runner script; empty for none.
	PreRunner string
	// PreRunnerLimit is how long it may take; 0 for DefaultPreRunnerLimit.
	PreRunnerLimit time.Duration
	// Env is added to the environment of runner and pre-runner script.
	Env map[string]string
	// Config is the path of agentd's configuration, which our own commands read.
	Config string
	// Caches are the directories of jobs that outlive a run.
	Caches []cache.Spec
	// ArchivesURL is of the server from which archives of actions are fetched: see archive.Fetcher. Empty: none are.
	ArchivesURL string
	// MinimumFree is the disk space that a clean host must have, in bytes.
	MinimumFree uint64
	// MinimumFreeFiles is how many more files must fit on the disk: caches leave until they do.
	MinimumFreeFiles uint64
	// JobSummary has the introduction of the host in the summary of each job too.
	JobSummary bool
	// Version is that of agentd, for the statements of resets.
	Version string
	// RefusalWait is how long a refused job has to send the hook's message; 0 for DefaultRefusalWait.
	RefusalWait time.Duration
	// StandbyWait is how long a job waits on a host in standby until Allow names its run; 0 for DefaultStandbyWait.
	StandbyWait time.Duration
	// Systemd makes tasks run as units of systemd; nil for process groups.
	Systemd *Systemd
	// Power ends the machine. If it is nil, the host ends with its agent, for which
	// its init provides. SetIdentity sets it too.
	Power  Power
	Logger hclog.Logger
}

// Power powers off the machine.
type Power interface {
	// Off returns when the end of the machine has begun. It is safe to repeat.
	Off(ctx context.Context, reason string) error
}

// DefaultPreRunnerLimit is enough to pull an image or two, and leaves half of the
// creation timeout of 10 m for the rest.
const DefaultPreRunnerLimit = 5 * time.Minute

// Host is one machine. Its methods are called by one goroutine.
type Host struct {
	o      Options
	log    hclog.Logger
	bootID string
	proc   proc.FS

	processes     processes
	layout        layout
	changed       chan struct{}
	poll          *time.Timer
	version       string // of the runner; empty if unknown
	held          heldCaches
	used          []archive.Action  // by the run that is cleaned up after
	mirror        *lifecycle.Mirror // to fetch in the clean-up under way; nil: none
	publicKey     statement.Key     // of the agent; empty before SetIdentity, and if it could not be made
	refused       proc.ID           // the living worker whose job the hook refused; zero if there is none
	started       startedJob        // whose worker was last seen
	watchedWorker atomic.Int64      // pid of the worker whose end is waited for
	interruptedAt atomic.Int64      // when the cloud reclaims the machine, in Unix nanoseconds; 0 if that is not announced
	rebalanceAt   atomic.Int64      // when the cloud advised to leave it, likewise
}

var _ agent.Host = (*Host)(nil)

// New opens the host and makes its directories. An error means that it can never work. A host that was set up
// before is opened even if something is missing now, or if its disk cannot be written, since a job may be
// running on it. What cannot be done there fails when it is tried, and is reported.
func New(o Options) (*Host, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("open host: %w", err)
	}
	bootID, err := proc.Default.BootID()
	if err != nil {
		return nil, fmt.Errorf("open host: %w", err)
	}
	h := &Host{o: o, log: o.Logger, bootID: bootID, proc: proc.Default, changed: make(chan struct{}, 1)}
	h.poll = time.AfterFunc(time.Hour, h.notify)
	h.poll.Stop()
	h.processes, h.layout = h.newProcesses()
	if err := o.checkFiles(); err != nil {
		if !h.hasRunner() {
			return nil, fmt.Errorf("open host: %w", err)
		}
		h.log.Error("files of the host are missing", logkey.Error, err)
	}
	if err := h.layout.setUp(); err != nil {
		h.log.Error("cannot set up the host's directory", logkey.Error, err)
	}
	h.readRunnerVersion()
	return h, nil
}

func (o *Options) complete() error {
	if o.PreRunnerLimit <= 0 {
		o.PreRunnerLimit = DefaultPreRunnerLimit
	}
	if o.RefusalWait <= 0 {
		o.RefusalWait = DefaultRefusalWait
	}
	if o.StandbyWait <= 0 {
		o.StandbyWait = DefaultStandbyWait
	}
	o.Logger = cmp.Or(o.Logger, hclog.NewNullLogger())
	if !filepath.IsAbs(o.Dir) {
		return fmt.Errorf("directory %q is not absolute", o.Dir)
	}
	if !filepath.IsAbs(o.Program) {
		return fmt.Errorf("program %q is not absolute", o.Program)
	}
	return nil
}

// checkFiles checks that the distribution and the pre-runner script exist.
func (o *Options) checkFiles() error {
	var wrong []error
	for _, name := range []string{"config.sh", "bin/Runner.Listener"} {
		if _, err := os.Stat(filepath.Join(o.Distribution, name)); err != nil {
			wrong = append(wrong, fmt.Errorf("runner distribution: %w", err))
		}
	}
	if exists(filepath.Join(o.Distribution, ".runner")) {
		wrong = append(wrong, fmt.Errorf("runner distribution: %s is a configured runner, not an unpacked one", o.Distribution))
	}
	if o.PreRunner != "" {
		if _, err := os.Stat(o.PreRunner); err != nil {
			wrong = append(wrong, fmt.Errorf("pre-runner script: %w", err))
		}
	}
	return errors.Join(wrong...)
}

// hasRunner reports whether the runner is in its place.
func (h *Host) hasRunner() bool {
	return exists(h.path("runner/bin/Runner.Listener")) && exists(h.path("runner/config.sh"))
}

// newProcesses returns how tasks run on this host, and what is where.
func (h *Host) newProcesses() (processes, layout) {
	if h.o.Systemd == nil {
		return &groupProcesses{h: h}, &groupLayout{h: h}
	}
	units := newUnitProcesses(h, *h.o.Systemd)
	return units, &unitLayout{h: h, o: *h.o.Systemd, processes: units}
}

// mirrorRunner puts the runner in its place as it was unpacked.
func (h *Host) mirrorRunner(o tree.Owner) error {
	if err := tree.Mirror(h.o.Distribution, h.path("runner"), o); err != nil {
		return fmt.Errorf("renew runner: %w", err)
	}
	return nil
}

// makeDirs makes directories that belong to the agent.
func (h *Host) makeDirs(names ...string) error {
	for _, name := range names {
		if err := os.MkdirAll(h.path(name), 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	return nil
}

func (h *Host) path(elem ...string) string {
	return filepath.Join(append([]string{h.o.Dir}, elem...)...)
}

// Interrupted records when the cloud will reclaim the host, by the cloud's notice. Unlike
// most methods it may be called by any goroutine.
func (h *Host) Interrupted(at time.Time) {
	h.interruptedAt.Store(at.UnixNano())
	h.notify()
}

// Rebalance records that the cloud advised to leave the host. It too may be called by any goroutine.
func (h *Host) Rebalance(at time.Time) {
	h.rebalanceAt.Store(at.UnixNano())
	h.notify()
}

// SetIdentity sets which instance the host is, how that is powered off, and the logger for
// it. power may be nil. It makes the agent's key if there is none for the instance.
func (h *Host) SetIdentity(instanceID string, power Power, log hclog.Logger) {
	h.o.InstanceID, h.o.Power, h.log = instanceID, power, log
	h.ensureKey()
}

// RemoveSecrets removes secrets that a killed agent has left in memory. Only the agent itself may call it.
func (h *Host) RemoveSecrets() { h.processes.removeSecrets() }

// Changed receives a value when something on the host may have changed.
func (h *Host) Changed() <-chan struct{} { return h.changed }

func (h *Host) notify() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// How soon after Observe the host notifies Changed. An idle host does not.
const (
	// pollProcesses is while a process group runs that a run waits for.
	pollProcesses = 5 * time.Millisecond
	// pollUnits is the same for units: systemd announces their end, and polling is
	// only for announcements that were missed.
	pollUnits = 100 * time.Millisecond
	// pollListening is while a listener may get a job, since the host is to be known
	// as busy at once. The end of a worker is noticed without polling.
	pollListening = 250 * time.Millisecond
)

func (h *Host) setPoll(s agent.Observed) {
	l := s.Listener.Phase
	switch {
	case s.Prepared.Phase == agent.PhaseRunning, s.Registered.Phase == agent.PhaseRunning,
		s.Removed.Phase == agent.PhaseRunning, s.Cleaned.Phase == agent.PhaseRunning,
		l == agent.ListenerStarting, l == agent.ListenerStopping:
		h.poll.Reset(h.processes.pollInterval())
	case l == agent.ListenerListening, s.Busy:
		h.poll.Reset(pollListening)
	default:
		h.poll.Stop()
	}
}

// Observe returns the actual state of the host.
func (h *Host) Observe(ctx context.Context) (agent.Observed, error) {
	if err := ctx.Err(); err != nil {
		return agent.Observed{}, err
	}
	s := agent.Observed{BootID: h.bootID, RunnerVersion: h.version, Key: h.publicKey}
	if at := h.interruptedAt.Load(); at != 0 {
		s.InterruptionAt = time.Unix(0, at)
	}
	if at := h.rebalanceAt.Load(); at != 0 {
		s.RebalanceAt = time.Unix(0, at)
	}
	var errs [5]error
	// The clean-up comes first: while it runs the rest is changing, and once it has ended nothing is.
	s.Cleaned, errs[0] = h.cleanProgress(ctx)
	s.Prepared, errs[1] = h.prepareProgress(ctx)
	errs[2] = h.observeJob(&s)
	errs[3] = h.observeRegistration(ctx, &s)
	errs[4] = h.observeListener(ctx, &s)
	if err := errors.Join(errs[:]...); err != nil {
		return agent.Observed{}, err
	}
	h.readHeldCaches(s.Cleaned.At)
	s.Caches, s.CacheBytes = h.held.list, h.held.bytes
	h.setPoll(s)
	return s, nil
}

// layout is what is where on a host, who owns it, and how it is cleaned between runs.
type layout interface {
	// setUp makes what must exist before anything can run, as far as the agent has the right to.
	setUp() error
	// environment returns the variables that tasks get because of the way they run.
	environment() []string
	// registrationDir is where the registration of the runner is kept, and removeCommand the command that removes it.
	registrationDir() string
	removeCommand() command
	// protectCredentials makes sure that no other user can read the secrets of a JIT configuration, which the runner
	// writes to files.
	protectCredentials() error
	// views is how runs see caches, and the owner of their content; home is the directory in which they see them, and attachLimit how long it may
	// take until they do.
	views() (cachestore.Mechanism, tree.Owner)
	home() string
	attachLimit() time.Duration
	// prepareCommand is what runs once in each boot before anything else; nil for nothing.
	prepareCommand() *command
	// startClean starts the clean-up, which ends with Host.CleanNow.
	startClean(ctx context.Context, t task, r startRecord) error
	// clean ends what the last run left running and renews what it wrote to. It adds the steps to the statement.
	clean(ctx context.Context, r *statement.Reset, keepImages bool) error
	// verify checks the result of clean, as if something else had done it. It adds the checks to the statement.
	verify(ctx context.Context, r *statement.Reset, keepImages bool) error
	// keepImages and removeImages are about docker's store, which only a machine with units has.
	keepImages(ctx context.Context, c dockerstore.Cache) (dockerstore.Outcome, error)
	removeImages(ctx context.Context) error
	// keyWithinReach: jobs could read the agent's key.
	keyWithinReach() bool
	// makeReady returns a clean host to the state before its first run.
	makeReady(ctx context.Context) error
}
