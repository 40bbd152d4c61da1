// Package process is a cloud on this machine: its hosts are agentd processes.
//
// Below the root, which several replicas of controld may share, are
//
//	lock                    held while an order is planned and its directories made
//	draft                   the directory of a host while it is made
//	orders/<token>.json     what an order became; written before its hosts
//	hosts/<instance id>/    one host, from its launch until 24 h after its end
//	    machine.json        type, zone and tags; never changes
//	    agentd.yaml         the configuration of its agentd
//	    init                the script that stands in for systemd
//	    lock                held by the starter of init, until init.pid exists
//	    init.pid            pid, start time and boot id of init
//	    booted              the boot delay is over
//	    agentd.log          what init and agentd print; agentd.log.1 the one before
//	    stopping, stopped   the host is to be stopped, or is: its processes are gone, and its disk stays
//	    ending              the host is to end: nothing may start in it
//	    ended               when it ended; only machine.json is left beside it
//
// These files and /proc are the whole state, so a replica can die at any instruction and another continues. A
// host whose launch was cut short before init is pending until its order is made again, Launched finds it, or
// it is terminated.
//
// Init leads a session and process group of its own and starts agentd again unless it exits with a terminal
// code: 0, the host powered itself off, or 78 (EX_CONFIG of sysexits.h), its configuration can never work.
// Then init ends, and the host with it, as a machine without power does. What it leaves running (runners have
// process groups of their own) is ended by the next Describe, List or Terminate, and the host is gone only
// when nothing of it is left.
//
// To a host belongs every process of our own user in init's session and every one that was started with
// REMUDA_INSTANCE_ID=<instance id> in its environment. A process that leaves the session and drops that
// variable escapes; only a cgroup or a real machine could hold it.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/compute/placement"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/proc"
	"github.com/remuda-ci/remuda/internal/retry"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// Terminal exit codes of agentd, after which init does not start it again.
const (
	ExitPoweredOff    = 0
	ExitConfiguration = 78
)

// InstanceIDVariable is the environment variable that marks a host's processes.
const InstanceIDVariable = "REMUDA_INSTANCE_ID"

// DefaultRestartDelay is how long init waits before it starts agentd again: short enough that a heartbeat is
// hardly late, long enough that an agentd that cannot start does not use up a core.
const DefaultRestartDelay = time.Second

// Options of the cloud.
type Options struct {
	// Root is its directory; it is made if need be.
	Root string
	// AgentPath is the agentd binary, run as "agentd --config FILE".
	AgentPath string
	// AgentConfig returns the configuration of a host's agentd. It is called before hostDir exists.
	AgentConfig func(m lifecycle.Machine, hostDir string) ([]byte, error)
	// Env is the environment of hosts besides REMUDA_INSTANCE_ID. Nil means only
	// PATH, HOME and TMPDIR of this process, since others may be secret.
	Env []string
	// ReadOnly is for who only looks: no directory is made, and List and Describe
	// end nothing of what is left of a host.
	ReadOnly bool
	// BootDelay is how long a host is pending before its agentd starts.
	BootDelay time.Duration
	// RestartDelay is how long init waits before it starts agentd again; 0: DefaultRestartDelay.
	RestartDelay time.Duration
	// Limits are zones, architecture and capacity.
	placement.Limits
	// Log may be nil: nothing is logged then.
	Log hclog.Logger
	// Now is the clock of launch times and of the age of ended hosts; nil: time.Now.
	Now func() time.Time
}

// Compute is the cloud, as one replica sees it. It is safe for concurrent use.
type Compute struct {
	opts   Options
	bootID string // of the kernel: pids and start times start over with it
	log    hclog.Logger
}

// New opens the cloud at o.Root with the hosts it has.
func New(o Options) (*Compute, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("open compute: %w", err)
	}
	bootID, err := proc.Default.BootID()
	if err != nil {
		return nil, fmt.Errorf("open compute: %w", err)
	}
	for _, dir := range []string{"hosts", "orders"} {
		if o.ReadOnly {
			break
		}
		if err := os.MkdirAll(filepath.Join(o.Root, dir), 0o700); err != nil {
			return nil, fmt.Errorf("open compute: make directory: %w", err)
		}
	}
	// Ids depend on the path of the root, so it must have one form only.
	if o.Root, err = filepath.EvalSymlinks(o.Root); err != nil {
		return nil, fmt.Errorf("open compute: %w", err)
	}
	return &Compute{opts: o, bootID: bootID, log: o.Log.Named("compute")}, nil
}

// complete checks the options, all at once, and fills in the defaults.
func (o *Options) complete() error {
	var wrong []error
	check := func(ok bool, says string) {
		if !ok {
			wrong = append(wrong, errors.New(says))
		}
	}
	check(o.Root != "", "root: a directory is required")
	check(o.AgentConfig != nil, "agent config: a function is required")
	check(o.BootDelay >= 0, "boot delay: must be at least 0")
	check(o.RestartDelay >= 0, "restart delay: must be at least 0")
	agent, err := exec.LookPath(o.AgentPath)
	if err != nil {
		wrong = append(wrong, fmt.Errorf("agent path: %w", err))
	}
	if err := errors.Join(append(wrong, o.Check())...); err != nil {
		return err
	}
	if o.AgentPath, err = filepath.Abs(agent); err != nil {
		return fmt.Errorf("agent path: %w", err)
	}
	if o.Root, err = filepath.Abs(o.Root); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	if o.Env == nil {
		o.Env = inherited("PATH", "HOME", "TMPDIR")
	}
	o.RestartDelay = cmp.Or(o.RestartDelay, DefaultRestartDelay)
	o.Log = cmp.Or(o.Log, hclog.NewNullLogger())
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}

// inherited are the variables of this process that have the names.
func inherited(names ...string) []string {
	env := []string{} // not nil, which means the whole environment to os/exec
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// unavailable says that this machine could not do what was asked for now: its disk is full or read-only, or
// it has no more processes. A caller who has left is no fault of the machine.
func unavailable(what string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return &lifecycle.UnavailableError{What: what, Err: err}
}

// lockLook is how often a lock that another holds is tried again. Locks are held for some milliseconds.
const lockLook = 5 * time.Millisecond

// lockFile waits for the lock. It is released by closing the file, and by the kernel when its holder dies.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	for {
		f, ok, err := safefile.TryLock(path)
		if err != nil || ok {
			return f, err
		}
		if err := retry.Sleep(ctx, lockLook); err != nil {
			return nil, fmt.Errorf("wait for lock %s: %w", path, err)
		}
	}
}
