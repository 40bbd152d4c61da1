package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/host/notify"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// errStopped means that agentd was stopped and the host lives on, without its agent.
var errStopped = errors.New("stopped by a signal; the runner is left as it is")

func run(ctx context.Context, c config) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	// systemd need not wait until instance metadata has identified the machine.
	tell := teller(c.logger(""))
	tell(notify.Ready())
	tell(notify.Status("finding out which machine this is"))
	h, err := c.host(0)
	if err != nil {
		return &configError{err}
	}
	release, err := lockState(c.logger(c.InstanceID), c.state("agent.lock"))
	if err != nil {
		return err
	}
	defer release()
	h.RemoveSecrets()
	h.PrepareAhead(ctx)
	p, err := findPlace(ctx, c, fail)
	if err != nil {
		return stopped(ctx, err)
	}
	defer p.store.Close()
	log := c.logger(p.instanceID)
	h.SetIdentity(p.instanceID, p.power, log.Named("host"))
	a, err := agent.New(c.agentOptions(p, h, log.Named("agent")))
	if err != nil {
		return err
	}
	if len(c.Caches) > 0 && c.Host.Privileged {
		log.Warn("this host keeps no caches: jobs of its pool can become root, and could write to any of them")
	}
	log.Info("started", logkey.Version, telemetry.Version, logkey.Directory, c.Directory)
	for _, watch := range p.watches {
		go watch(ctx, h)
	}
	if err := runAgent(ctx, a, h, log); err != nil {
		return err
	}
	return c.awaitEnd(ctx, p)
}

// awaitEnd waits for the end of a machine that was powered off.
func (c config) awaitEnd(ctx context.Context, p place) error {
	if c.Systemd == nil || p.power == nil {
		return nil // the supervisor of agentd treats its end as that of the machine
	}
	return p.power.Await(ctx)
}

// teller returns a function that logs a failure of sd_notify, once.
func teller(log hclog.Logger) func(error) {
	said := false
	return func(err error) {
		if err != nil && !said {
			log.Warn("sd_notify failed", logkey.Error, err)
		}
		said = err != nil
	}
}

// runAgent runs the agent until the machine is powered off or agentd is stopped. It
// reports state and status to systemd.
func runAgent(ctx context.Context, a *agent.Agent, h *host.Host, log hclog.Logger) error {
	tell := teller(log)
	err := a.Run(ctx, agent.Waker{
		Changed: h.Changed(), Stepped: notify.Stepped(log),
		Status: func(line string) { tell(notify.Status(line)) },
	})
	if err != nil {
		tell(notify.Stopping())
		return stopped(ctx, fmt.Errorf("run agent: %w", err))
	}
	log.Info("powered off")
	return nil
}

// stopped returns the error with which agentd ends without having powered off its host.
func stopped(ctx context.Context, err error) error {
	var wrong *configError
	switch {
	case errors.As(context.Cause(ctx), &wrong):
		return wrong
	case ctx.Err() != nil:
		return errStopped
	}
	return err
}

// logger returns the logger of a host. Its id may not be known yet.
func (c config) logger(instanceID string) hclog.Logger {
	log := telemetry.NewLogger("agentd", c.LogLevel, c.LogFormat, os.Stderr)
	if instanceID == "" {
		return log
	}
	return log.With(logkey.Instance, instanceID)
}

// lockState keeps a second agentd from working on the host. On a disk that cannot be
// written there is no lock, but agentd runs anyway, since a job may be running.
func lockState(log hclog.Logger, path string) (release func(), err error) {
	lock, err := host.Lock(path)
	if errors.Is(err, host.ErrInUse) {
		return nil, err
	}
	if err != nil {
		log.Error("cannot lock the host, continuing without a lock", logkey.Error, err)
		return func() {}, nil
	}
	return func() { lock.Close() }, nil
}

// hostFile is what the user data of a host's launch template tells its agent: where the host belongs.
// cloud-init writes the file at boot, before agentd starts. It is JSON, which is YAML too.
type hostFile struct {
	Region string `yaml:"region"`
	Prefix string `yaml:"prefix"`
	// Pool is only logged.
	Pool string `yaml:"pool"`
	// PreRunner is the path of the pool's pre-runner script; empty for none.
	PreRunner string `yaml:"pre_runner"`
	// PostRelease is the path of its post-release script; empty for none.
	PostRelease string `yaml:"post_release"`
	// Privileged says that jobs may become root.
	Privileged bool `yaml:"privileged"`
	// JobsReadMetadata says that the pool lets its jobs read the instance metadata.
	JobsReadMetadata bool `yaml:"jobs_read_metadata"`
	// Caches are those of the pool.
	Caches []cacheConfig `yaml:"caches"`
}

// Validate reports every rule that the file breaks.
func (h *hostFile) Validate(root strictyaml.Place) {
	root.At("prefix").Match(h.Prefix, prefixName, "1 to 20 of a-z 0-9 and -, a letter first")
	root.At("region").Match(h.Region, regionName, "a region such as eu-west-1")
	root.At("pre_runner").OptionalPath(h.PreRunner)
	root.At("post_release").OptionalPath(h.PostRelease)
	validateCaches(root.At("caches"), h.Caches)
}

// readHostFile fills in what the configuration leaves out. The configuration takes precedence.
func (c *config) readHostFile() error {
	if c.HostFile != "" {
		data, err := os.ReadFile(c.HostFile)
		if errors.Is(err, os.ErrNotExist) {
			return &noHostFileError{err}
		}
		if err != nil {
			return fmt.Errorf("read host_file, which user data writes at boot: %w", err)
		}
		if err := strictyaml.Decode(c.HostFile, data, &c.Host); err != nil {
			return err
		}
	}
	c.PreRunner.Script = cmp.Or(c.PreRunner.Script, c.Host.PreRunner)
	c.PostRelease.Script = cmp.Or(c.PostRelease.Script, c.Host.PostRelease)
	if c.Caches == nil {
		c.Caches = c.Host.Caches
	}
	if d := c.Store.DynamoDB; d != nil {
		d.Prefix = cmp.Or(d.Prefix, c.Host.Prefix, defaultPrefix)
		d.Region = cmp.Or(d.Region, c.Host.Region)
	}
	return nil
}

// defaultPrefix is the table prefix of a deployment without a name.
const defaultPrefix = "remuda"
