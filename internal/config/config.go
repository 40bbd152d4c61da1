// Package config is controld's configuration: what can be written in its file,
// the defaults of what is not, and the rules. It builds nothing.
//
// docs/configuration.md is the same for people, and examples/controld.yaml a
// whole file; tests keep the three in step.
package config

import (
	"fmt"
	"os"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// Config is the whole file.
type Config struct {
	// ForDev, which no file says, has the file read as one for controld dev.
	ForDev bool
	// Ignored are the keys of such a file that do not count there.
	Ignored []string
	// WithoutHosts, which no file says, is a file with services and nothing that is about hosts: such a fleet only scales
	// services and keeps their queues.
	WithoutHosts bool
	GRPC         GRPC `yaml:"grpc"`
	HTTP         HTTP `yaml:"http"`
	// Page is nil when there is no page for people.
	Page    *Page   `yaml:"page"`
	Store   Store   `yaml:"store"`
	Compute Compute `yaml:"compute"`
	// AWS is nil when records and hosts are on this machine. With it, records are in DynamoDB, the queue is
	// in SQS and hosts are EC2 instances, and neither Store nor Compute counts.
	AWS    *AWS   `yaml:"aws"`
	GitHub GitHub `yaml:"github"`
	// Callers is who may call beside this machine.
	Callers Callers `yaml:"callers"`
	// Webhooks is nil when GitHub's deliveries are not taken.
	Webhooks *Webhooks `yaml:"webhooks"`
	// ResourceClasses are those of the file beside the default ones, by name.
	ResourceClasses map[string]ResourceClass `yaml:"resource_classes"`
	// Pools are those of the file and DefaultPool, by name.
	Pools map[string]Pool `yaml:"pools"`
	// Services are those of runners in containers, by name.
	Services map[string]Service `yaml:"services"`
	// ScaleDown is nil when no host is ended for being idle in its run.
	ScaleDown *ScaleDown `yaml:"scale_down"`
	// Limits bound the hosts of each repository and owner.
	Limits Limits `yaml:"limits"`
	// Cost has the prices of machines.
	Cost     Cost     `yaml:"cost"`
	Timeouts Timeouts `yaml:"timeouts"`
	Sweeps   Sweeps   `yaml:"sweeps"`
	Tracing  Tracing  `yaml:"tracing"`
	Log      Log      `yaml:"log"`
}

// GRPC is where callers reach the fleet.
type GRPC struct {
	// Addr is host:port; port 0 takes a free one. Without TLS the host must be
	// a loopback address, since every caller may order and end hosts.
	Addr string `yaml:"addr"`
	// TLS is nil for plaintext.
	TLS *TLS `yaml:"tls"`
}

// TLS names PEM files.
type TLS struct {
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ClientCAFile has the authorities of operators' certificates; empty: callers are asked for none.
	ClientCAFile string `yaml:"client_ca_file"`
}

// HTTP is where health, metrics and webhooks are served.
type HTTP struct {
	Addr string `yaml:"addr"`
}

// Store is where the records are kept.
type Store struct {
	SQLite SQLite `yaml:"sqlite"`
}

// SQLite is a store in one file.
type SQLite struct {
	// Path of the database; its directory must exist. Hosts open it too, so it
	// must be on a local file system.
	Path string `yaml:"path"`
}

// Compute is where hosts come from.
type Compute struct {
	Process Process `yaml:"process"`
}

// Process is a cloud on this machine, whose hosts are agentd processes.
type Process struct {
	// Directory holds a directory for each host.
	Directory string `yaml:"directory"`
	// Agentd is the host agent's program, a path or a name found in PATH.
	Agentd string `yaml:"agentd"`
	// Runner is the directory of an unpacked actions/runner.
	Runner string `yaml:"runner"`
	// BootDelay is how long a host takes to boot, so that cold and warm starts
	// differ visibly. Too near to Timeouts.Creation and no host ever gets ready.
	BootDelay time.Duration `yaml:"boot_delay"`
	Zones     []string      `yaml:"zones"`
	// Capacity is how many hosts may live at once whose instance type matches the pattern, so that shortage
	// can be shown; SpotCapacity the same for spot hosts, in addition.
	Capacity     map[string]int `yaml:"capacity"`
	SpotCapacity map[string]int `yaml:"spot_capacity"`
	// Environment is added to that of jobs, by name. It is no place for
	// secrets: every job of every repository sees it.
	Environment map[string]string `yaml:"environment"`
}

// ResourceClass is what a host of it has at least.
type ResourceClass struct {
	CPU       int `yaml:"cpu"` // vCPU
	MemoryMiB int `yaml:"memory_mib"`
	// MaxCPU and MaxMemoryMiB bound what a host on EC2 has; 0: twice CPU, and four times MemoryMiB.
	MaxCPU       int `yaml:"max_cpu"`
	MaxMemoryMiB int `yaml:"max_memory_mib"`
}

// DefaultPool is the name of the pool of a request that names none. It always exists.
const DefaultPool = "default"

// Pool is one kind of hosts.
type Pool struct {
	// ResourceClasses that may be asked for; none: all.
	ResourceClasses []string `yaml:"resource_classes"`
	// UsageClasses that may be asked for; none: all.
	UsageClasses []lifecycle.UsageClass `yaml:"usage_classes"`
	// InstanceTypes are patterns such as c6i.*. A host's type must match one of
	// them; none: all types will do.
	InstanceTypes []string        `yaml:"instance_types"`
	Reuse         lifecycle.Reuse `yaml:"reuse"`
	// Reset says how a host is renewed between two runs.
	Reset statement.Level `yaml:"reset"`
	// Privileged says that a job may become root on its host, with sudo or
	// docker. Nothing that the host holds is safe from its jobs then.
	Privileged bool `yaml:"privileged"`
	// JobsReadMetadata lets jobs read the instance metadata, and with it the credentials of their host.
	JobsReadMetadata bool `yaml:"jobs_read_metadata"`
	// DefaultLabels registers runners with GitHub's default labels (self-hosted, linux, and x64 or arm64) beside
	// their own. Any job of the scope that names these alone then comes to the pool's hosts.
	DefaultLabels bool `yaml:"default_labels"`
	// MaxUses is how many runs a host serves before it is ended; 0: any number.
	MaxUses int `yaml:"max_uses"`
	// MaxAge is how long after its launch a host may still go back to the pool;
	// 0: any time. What runs then is never ended for it.
	MaxAge time.Duration `yaml:"max_age"`
	// Drift says what becomes of hosts of an older launch template.
	Drift lifecycle.Drift `yaml:"drift"`
	// Standby says how a clean host waits for a run; empty: listening where that is possible.
	Standby lifecycle.StandbyMode `yaml:"standby"`
	// RerunInterrupted has the failed jobs of a run started again when EC2 took a
	// host with a running job back.
	RerunInterrupted bool `yaml:"rerun_interrupted"`
	// MaxRuntime and IdleTime are those of Timeouts when nil.
	MaxRuntime *time.Duration `yaml:"max_runtime"`
	IdleTime   *time.Duration `yaml:"idle_time"`
	// PreRunner is the path of a script that each host runs once per boot,
	// before its first registration; empty: none.
	PreRunner string `yaml:"pre_runner"`
	// PostRelease is the path of a script that each host runs as root whenever it
	// has been cleaned, before it goes back to the pool; empty: none.
	PostRelease string `yaml:"post_release"`
	// Caches are directories of jobs that outlive their runs.
	Caches []Cache `yaml:"caches"`
	// EC2 is what differs from AWS.EC2 for this pool; nil: nothing.
	EC2 *EC2 `yaml:"ec2"`
	// Awake is how many of its newest clean hosts never rest. A claim of as many never waits for one that rests.
	Awake int `yaml:"awake"`
	// Maximum is how many hosts it may have at once, whatever they do; 0: none, and nil: any number.
	Maximum *int `yaml:"maximum"`
	// SpotBreaker pauses launches of spot hosts after many interruptions.
	SpotBreaker SpotBreaker `yaml:"spot_breaker"`
	// Warm has fresh hosts ready ahead of need; nil: none are.
	Warm *Warm `yaml:"warm"`
	// Stopped has idle hosts stopped, and started for the next run; nil: they are ended.
	Stopped *Stopped `yaml:"stopped"`
	// Jobs makes it a job pool; nil: hosts are for who calls Provision.
	Jobs *Jobs `yaml:"jobs"`
}

// SpotBreaker has on-demand hosts launched for a while in the place of spot ones,
// where a request allows it, once EC2 has taken many back.
type SpotBreaker struct {
	// Interruptions of so many hosts of the pool within Within open it for Pause.
	// 0: it never opens. At 1 any interruption makes the pool dear for a while.
	Interruptions int           `yaml:"interruptions"`
	Within        time.Duration `yaml:"within"`
	Pause         time.Duration `yaml:"pause"`
}

// SetDefaults makes a pool that a file names start from the same values as the default pool.
func (p *Pool) SetDefaults() {
	p.Awake = lifecycle.DefaultPolicy().Awake
	p.Reuse, p.Drift = lifecycle.ReuseSameRepository, lifecycle.DriftLeave
	p.Reset = statement.LevelSlate
	p.SpotBreaker = SpotBreaker{Within: 10 * time.Minute, Pause: 30 * time.Minute}
}

// Timeouts are the deadlines of a host's life: see lifecycle.Policy.
type Timeouts struct {
	// Creation: launch to ready. Shorter than a boot with its pre-runner
	// script and no host ever gets ready; longer pays for hosts that never will.
	Creation time.Duration `yaml:"creation"`
	// Claim: claim to ready, without a boot. Shorter than a registration takes
	// (some seconds) ends good hosts; longer lets a run wait for a dead one.
	Claim time.Duration `yaml:"claim"`
	// MaxRuntime: ready to the forced end, busy or not. The one deadline that
	// kills a job: shorter than the longest run kills it. Longer pays for the hosts
	// of a run that is never released.
	MaxRuntime time.Duration `yaml:"max_runtime"`
	// Release: not busy to deregistered and clean. Shorter than a big
	// workspace takes to delete and every host is ended instead of reused.
	Release time.Duration `yaml:"release"`
	// Idle: how long a pooled host waits for the next run. It is paid for all
	// that time; what is shorter than ClaimMargin is never claimed.
	Idle time.Duration `yaml:"idle"`
	// Silence: without a heartbeat for so long a host is ended. Heartbeats come every 15 s: near that, one
	// lost heartbeat is a lost host; much longer, and runs are given hosts that are dead.
	Silence time.Duration `yaml:"silence"`
	// External bounds a release that GitHub or AWS hold up. At Release or below
	// an outage of GitHub would end the pool; longer pays for hosts through it.
	External time.Duration `yaml:"external"`
	// Unattended: a ready host whose caller went away is released when it got no job for so long. Shorter
	// than a workflow takes to queue its jobs takes hosts from runs that are about to use them.
	Unattended time.Duration `yaml:"unattended"`
	// ClaimMargin: a pooled host so close to its end is not claimed. At 0 an
	// agent may end itself, by its own clock, while it is being claimed.
	ClaimMargin time.Duration `yaml:"claim_margin"`
	// Forget: how long the record of an ended host is kept, for people to ask
	// why. Longer makes the store larger.
	Forget time.Duration `yaml:"forget"`
}

// Sweeps are the intervals at which controld looks after things by itself.
type Sweeps struct {
	// Due: hosts and requests whose next look has come. Shorter costs reads of
	// the index; longer delays all that no RPC waits for, by as much.
	Due time.Duration `yaml:"due"`
	// Liveness: heartbeats. It reads all reports, so shorter costs with the
	// size of the fleet; it adds to Timeouts.Silence.
	Liveness time.Duration `yaml:"liveness"`
	// Cloud: machines without record, records without machine, registrations without host. Shorter spends the
	// request limits of EC2 and GitHub; longer pays for leaked machines.
	Cloud time.Duration `yaml:"cloud"`
	// Services: what waits for services of runners, and what they run. Shorter spends requests on services
	// that are idle; longer has a job wait whose nudge was lost. It times Service.IdleChecks.
	Services time.Duration `yaml:"services"`
	// ScaleDown: hosts that are idle, or unknown to GitHub. Shorter spends the request limit of GitHub, by a
	// call for each owner and hundred of its runners; longer pays for idle hosts.
	ScaleDown time.Duration `yaml:"scale_down"`
	// Warm: how many fresh hosts are ready. Shorter costs reads of each warm pool's
	// row and hosts; longer has runs find none, by as much.
	Warm time.Duration `yaml:"warm"`
	// Budgets: how much of the budgets is used, for which hosts and what they were used for on two days are read. Shorter costs
	// these reads; longer has runs spend more than their budget, by as much.
	Budgets time.Duration `yaml:"budgets"`
	// Lease: how long the sweeping replica is quiet, at most, before another takes over. Shorter than a slow
	// sweep's steps makes replicas take turns, which is harmless and wasteful.
	Lease time.Duration `yaml:"lease"`
	// Grace: a machine younger than this is never called leaked. Shorter than
	// a launch takes to be recorded ends hosts that were just ordered.
	Grace time.Duration `yaml:"grace"`
}

// LogLevel is how much is logged.
type LogLevel string

// LogLevels lists every level, the most talkative first.
var LogLevels = []LogLevel{"trace", "debug", "info", "warn", "error"}

// LogFormat is how it is written.
type LogFormat string

// LogFormats lists every format.
var LogFormats = []LogFormat{"text", "json"}

// Log configures what controld writes to standard error.
type Log struct {
	Level  LogLevel  `yaml:"level"`
	Format LogFormat `yaml:"format"`
}

// Rule is a rule beyond those of this package, for what only a builder knows. Its problems are reported with all others.
type Rule func(c *Config, root strictyaml.Place)

// Load reads a file over the defaults. What is wrong with its content comes
// back as a *strictyaml.Error, all at once.
func Load(path string, rules ...Rule) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data, rules...)
}

// Parse reads the content of a file, known by name in errors, over the defaults.
func Parse(name string, data []byte, rules ...Rule) (*Config, error) {
	c := Default()
	if err := c.Read(name, data, rules...); err != nil {
		return nil, err
	}
	return c, nil
}

// Read reads the content of a file over c, which may hold other defaults than
// Default's. After an error c is of no use.
func (c *Config) Read(name string, data []byte, rules ...Rule) error {
	every := func(root strictyaml.Place) {
		for _, rule := range rules {
			rule(c, root)
		}
	}
	return strictyaml.Decode(name, data, c, strictyaml.Rule(every),
		strictyaml.Values(lifecycle.Reuses...),
		strictyaml.Values(statement.Levels...),
		strictyaml.Values(lifecycle.Drifts...),
		strictyaml.Values(lifecycle.StandbyModes...),
		strictyaml.Values(lifecycle.UsageClasses...),
		strictyaml.Values(price.Units...),
		strictyaml.Values(policy.Roles...),
		strictyaml.Values(policy.Evictions...),
		strictyaml.Values(LogLevels...),
		strictyaml.Values(LogFormats...),
		strictyaml.Values(Scopes...),
		strictyaml.Values(cache.AllHolds...),
	)
}

// Check applies the rules to a configuration that was changed since it was
// read, by flags for instance; name says by what.
func (c *Config) Check(name string) error { return strictyaml.Check(name, c) }

// Backend is where the hosts of a fleet run and its rows are kept.
type Backend string

// The backends.
const (
	// BackendAWS has hosts on EC2, rows in DynamoDB and messages in SQS.
	BackendAWS Backend = "aws"
	// BackendLocal has hosts as processes of this machine, and rows and messages in SQLite.
	BackendLocal Backend = "local"
)

// Backend is BackendAWS for a configuration with an aws section, and else BackendLocal.
func (c *Config) Backend() Backend {
	if c.AWS != nil {
		return BackendAWS
	}
	return BackendLocal
}
