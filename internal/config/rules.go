package config

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The names that requests may use are those of proto/remuda/v1: what is longer
// or otherwise spelt here could never be asked for.
var (
	poolName        = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	className       = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	instancePattern = regexp.MustCompile(`^[a-z0-9.*-]{1,64}$`)
	repositoryName  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,39}/[A-Za-z0-9._-]{1,100}$`)
	variableName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	zoneName        = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
)

// Bounds of what can be configured.
const (
	maxEntries   = 100  // of each map and list
	maxCPU       = 1024 // twice the largest instance there is
	maxMemoryMiB = 32 << 20
	maxHosts     = 100_000
	maxUses      = 1_000_000
	maxAwake     = 200 // what a request may ask for
	day          = 24 * time.Hour
	// minAge is more than a boot and a short run take: below it every host would be launched for one run.
	minAge     = 5 * time.Minute
	maxAge     = 30 * day // after which GitHub gives an old runner no jobs
	maxRuntime = 5 * day  // after which GitHub ends a job on a self-hosted runner
)

// Validate implements strictyaml.Validator.
func (c *Config) Validate(root strictyaml.Place) {
	if c.ForDev {
		c.validateForDev(root)
	} else {
		c.validateAddresses(root)
		c.WithoutHosts = len(c.Services) > 0 && !aboutHosts(root)
	}
	switch {
	case c.WithoutHosts:
		c.validateWithoutHosts(root)
	case c.Backend() == BackendAWS:
		c.validateAWS(root)
	default:
		c.validateLocal(root)
	}
	if !c.WithoutHosts {
		c.GitHub.validate(root.At("github"))
	}
	c.validateCallers(root)
	if c.Webhooks != nil {
		c.Webhooks.validate(root.At("webhooks"))
	}
	few(root.At("resource_classes"), len(c.ResourceClasses))
	for name, class := range c.ResourceClasses {
		class.validate(root.At("resource_classes", name), name)
	}
	few(root.At("pools"), len(c.Pools))
	for name := range c.Pools {
		c.validatePool(root.At("pools", name), name)
	}
	c.validateJobs(root)
	c.validateServices(root)
	c.Limits.validate(root.At("limits"))
	c.Cost.validate(root.At("cost"))
	if c.ScaleDown != nil {
		c.ScaleDown.validate(root.At("scale_down"))
	}
	c.Timeouts.validate(root.At("timeouts"))
	c.validateMargin(root.At("timeouts", "idle"), c.Timeouts.Idle)
	c.Sweeps.validate(root.At("sweeps"))
}

// ofHosts are the keys that only a fleet with hosts needs. With any of them the whole of it is required.
var ofHosts = [][]string{
	{"github"}, {"webhooks"}, {"compute"}, {"pools"}, {"resource_classes"}, {"scale_down"}, {"limits"}, {"cost"}, {"callers", "repositories"},
	{"aws", "instance_profile"}, {"aws", "notices"}, {"aws", "ec2"},
}

func aboutHosts(root strictyaml.Place) bool {
	return slices.ContainsFunc(ofHosts, func(key []string) bool { return root.At(key...).Written() })
}

// validateWithoutHosts is for a fleet that only scales services: of its backend only the place of the rows counts.
func (c *Config) validateWithoutHosts(root strictyaml.Place) {
	if c.Backend() == BackendAWS {
		c.AWS.validateRecords(root)
	} else {
		root.At("store", "sqlite", "path").Path(c.Store.SQLite.Path)
	}
}

// validateAddresses are the rules of where callers come.
func (c *Config) validateAddresses(root strictyaml.Place) {
	c.GRPC.validate(root.At("grpc"))
	c.Tracing.validate(root.At("tracing"))
	address(root.At("http", "addr"), c.HTTP.Addr)
	c.Page.validate(root.At("page"))
	if c.HTTP.Addr == c.GRPC.Addr && !anyPort(c.HTTP.Addr) {
		root.At("http", "addr").Errorf("is that of grpc too; write another port")
	}
}

// ownOfDev are the keys that controld dev has values of its own for.
var ownOfDev = [][]string{
	{"grpc"}, {"http"}, {"page"}, {"store"}, {"compute", "process", "directory"}, {"compute", "process", "agentd"}, {"compute", "process", "runner"},
	{"github", "url"}, {"github", "ca_file"}, {"github", "token_file"}, {"github", "token_env"}, {"github", "apps"}, {"callers", "issuer"},
}

// validateForDev notes what is ignored: rules about addresses that dev does not listen
// on would only be in the way.
func (c *Config) validateForDev(root strictyaml.Place) {
	if c.Backend() == BackendAWS {
		root.At("aws").Errorf("is there, and dev keeps everything on this machine; remove it, or run `controld serve`")
	}
	for _, key := range ownOfDev {
		if root.At(key...).Written() {
			c.Ignored = append(c.Ignored, strings.Join(key, "."))
		}
	}
}

// validateLocal is for a fleet on this machine.
func (c *Config) validateLocal(root strictyaml.Place) {
	root.At("store", "sqlite", "path").Path(c.Store.SQLite.Path)
	c.Compute.Process.validate(root.At("compute", "process"))
	if delay := c.Compute.Process.BootDelay; delay >= c.Timeouts.Creation {
		root.At("compute", "process", "boot_delay").Errorf("is %s, not less than timeouts.creation (%s): no host would ever be ready; write less", delay, c.Timeouts.Creation)
	}
	for name, p := range c.Pools {
		if p.EC2 != nil {
			root.At("pools", name, "ec2").Errorf("means nothing without aws; add the aws section or remove it")
		}
		if p.PostRelease != "" {
			root.At("pools", name, "post_release").Errorf("means nothing without aws: only hosts with systemd run it; add the aws section or remove it")
		}
	}
}

func (g GRPC) validate(at strictyaml.Place) {
	address(at.At("addr"), g.Addr)
	if g.TLS == nil {
		if !isLoopback(g.Addr) {
			at.At("addr").Errorf("is reached from other machines in plaintext; write a loopback address such as 127.0.0.1:7443, or add grpc.tls")
		}
		return
	}
	at.At("tls", "cert_file").Path(g.TLS.CertFile)
	at.At("tls", "key_file").Path(g.TLS.KeyFile)
	at.At("tls", "client_ca_file").OptionalPath(g.TLS.ClientCAFile)
}

func (p Process) validate(at strictyaml.Place) {
	at.At("directory").Path(p.Directory)
	if p.Agentd == "" {
		at.At("agentd").Errorf("is missing; write a path, or a name found in PATH")
	}
	at.At("runner").Path(p.Runner)
	at.At("boot_delay").Between(p.BootDelay, 0, 10*time.Minute)
	words(at.At("zones"), p.Zones, zoneName, "a zone such as local-a")
	if len(p.Zones) == 0 {
		at.At("zones").Errorf("is empty; write at least one zone")
	}
	capacity(at.At("capacity"), p.Capacity)
	capacity(at.At("spot_capacity"), p.SpotCapacity)
	environment := at.At("environment")
	few(environment, len(p.Environment))
	for name := range p.Environment {
		if !variableName.MatchString(name) {
			environment.At(name).Errorf("is no name of an environment variable; write one such as GOCACHE")
		}
	}
}

func capacity(at strictyaml.Place, hosts map[string]int) {
	few(at, len(hosts))
	for pattern, n := range hosts {
		if !instancePattern.MatchString(pattern) {
			at.At(pattern).Errorf("is not a pattern of instance types; write one such as c6i.* or c*")
		}
		at.At(pattern).Number(n, 0, maxHosts)
	}
}

func (r ResourceClass) validate(at strictyaml.Place, name string) {
	if !className.MatchString(name) {
		at.Errorf("is no name of a resource class; write 1 to 32 of a-z 0-9 and -")
	}
	at.At("cpu").Number(r.CPU, 1, maxCPU)
	at.At("memory_mib").Number(r.MemoryMiB, 128, maxMemoryMiB)
	if r.MaxCPU != 0 {
		at.At("max_cpu").Number(r.MaxCPU, max(r.CPU, 1), maxCPU)
	}
	if r.MaxMemoryMiB != 0 {
		at.At("max_memory_mib").Number(r.MaxMemoryMiB, max(r.MemoryMiB, 128), maxMemoryMiB)
	}
}

func (c *Config) validatePool(at strictyaml.Place, name string) {
	p := c.Pools[name]
	if !poolName.MatchString(name) {
		at.Errorf("is no name of a pool; write 1 to 63 of a-z 0-9 and -")
	}
	words(at.At("resource_classes"), p.ResourceClasses, className, "a resource class")
	for i, class := range p.ResourceClasses {
		if _, ok := c.ResourceClasses[class]; !ok {
			at.At("resource_classes").Item(i).Errorf("is no resource class; write one of %s", strings.Join(c.classNames(), ", "))
		}
	}
	distinct(at.At("usage_classes"), p.UsageClasses)
	words(at.At("instance_types"), p.InstanceTypes, instancePattern, "a pattern such as c6i.* or c*")
	at.At("max_uses").Number(p.MaxUses, 0, maxUses)
	at.At("awake").Number(p.Awake, 1, maxAwake)
	if p.MaxRuntime != nil {
		at.At("max_runtime").Between(*p.MaxRuntime, time.Second, maxRuntime)
	}
	if p.MaxAge != 0 {
		at.At("max_age").Between(p.MaxAge, minAge, maxAge)
	}
	at.At("spot_breaker", "interruptions").Number(p.SpotBreaker.Interruptions, 0, maxUses)
	at.At("spot_breaker", "within").Between(p.SpotBreaker.Within, time.Minute, day)
	at.At("spot_breaker", "pause").Between(p.SpotBreaker.Pause, time.Minute, day)
	if p.RerunInterrupted && c.Webhooks == nil {
		at.At("rerun_interrupted").Errorf("means nothing without webhooks, which tell that a run has failed; add the webhooks section or leave it out")
	}
	at.At("pre_runner").OptionalPath(p.PreRunner)
	at.At("post_release").OptionalPath(p.PostRelease)
	if p.JobsReadMetadata && c.Backend() == BackendLocal {
		at.At("jobs_read_metadata").Errorf("is for hosts in EC2, and there is no aws section; leave it out")
	}
	c.validateWarm(at, name)
	c.validateReuse(at, p)
	c.validateReset(at, p)
	c.validateCaches(at.At("caches"), p)
	c.validateStandby(at, p)
	c.validateStopped(at, name)
}

// validateReuse refuses what would be accepted and do nothing.
func (c *Config) validateReuse(at strictyaml.Place, p Pool) {
	if p.Reuse != lifecycle.ReuseNone {
		if p.IdleTime != nil {
			at.At("idle_time").Between(*p.IdleTime, time.Second, day)
			c.validateMargin(at.At("idle_time"), *p.IdleTime)
		}
		return
	}
	for _, key := range []struct {
		name string
		set  bool
	}{
		{"max_uses", p.MaxUses > 1}, {"max_age", p.MaxAge != 0}, {"drift", p.Drift == lifecycle.DriftIgnore}, {"idle_time", p.IdleTime != nil},
	} {
		if key.set {
			at.At(key.name).Errorf("means nothing with reuse: none; leave it out")
		}
	}
}

// validateMargin: a pooled host must be claimable for some of its time.
func (c *Config) validateMargin(at strictyaml.Place, idle time.Duration) {
	if idle <= c.Timeouts.ClaimMargin {
		at.Errorf("is %s, and no host is claimed in the last %s (timeouts.claim_margin): none ever would be; write more, or a smaller margin",
			idle, c.Timeouts.ClaimMargin)
	}
}

func (t Timeouts) validate(at strictyaml.Place) {
	at.At("creation").Between(t.Creation, time.Second, 2*time.Hour)
	at.At("claim").Between(t.Claim, time.Second, time.Hour)
	at.At("max_runtime").Between(t.MaxRuntime, time.Second, maxRuntime)
	at.At("release").Between(t.Release, time.Second, time.Hour)
	at.At("idle").Between(t.Idle, time.Second, day)
	at.At("silence").Between(t.Silence, 30*time.Second, 30*time.Minute)
	at.At("external").Between(t.External, time.Second, day)
	at.At("unattended").Between(t.Unattended, time.Second, day)
	at.At("claim_margin").Between(t.ClaimMargin, 0, 10*time.Minute)
	at.At("forget").Between(t.Forget, time.Minute, 30*day)
	if t.External < t.Release {
		at.At("external").Errorf("is %s, less than timeouts.release (%s); write at least as much", t.External, t.Release)
	}
}

func (s Sweeps) validate(at strictyaml.Place) {
	at.At("due").Between(s.Due, 100*time.Millisecond, 5*time.Minute)
	at.At("liveness").Between(s.Liveness, time.Second, 5*time.Minute)
	at.At("cloud").Between(s.Cloud, time.Second, day)
	at.At("services").Between(s.Services, time.Second, time.Hour)
	at.At("scale_down").Between(s.ScaleDown, 10*time.Second, day)
	at.At("warm").Between(s.Warm, time.Second, 10*time.Minute)
	at.At("budgets").Between(s.Budgets, time.Second, 10*time.Minute)
	at.At("lease").Between(s.Lease, time.Second, 5*time.Minute)
	at.At("grace").Between(s.Grace, 10*time.Second, day)
}

func few(at strictyaml.Place, n int) {
	if n > maxEntries {
		at.Errorf("has %d entries; write at most %d", n, maxEntries)
	}
}

// baseURL checks a URL of https, or of http on this machine. What says what it should be, and what to write;
// plaintext says what is wrong with http to another machine, and allows it if it is empty.
func baseURL(at strictyaml.Place, raw, what, plaintext string) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "https" && u.Scheme != "http"):
		at.Errorf("is not %s", what)
	case u.Scheme == "http" && plaintext != "" && !isLoopback(net.JoinHostPort(u.Hostname(), "0")):
		at.Errorf("%s; write https", plaintext)
	}
}

// words checks a list of names. No name may be there twice.
func words(at strictyaml.Place, list []string, pattern *regexp.Regexp, what string) {
	few(at, len(list))
	for i, w := range list {
		if !pattern.MatchString(w) {
			at.Item(i).Errorf("is %.80q; write %s", w, what)
		}
	}
	distinct(at, list)
}

func distinct[T comparable](at strictyaml.Place, list []T) {
	seen := map[T]bool{}
	for i, v := range list {
		if seen[v] {
			at.Item(i).Errorf("is here twice; remove one")
		}
		seen[v] = true
	}
}

func address(at strictyaml.Place, addr string) {
	_, port, err := net.SplitHostPort(addr)
	if n, portErr := strconv.Atoi(port); err != nil || portErr != nil || n < 0 || n > 65535 {
		at.Errorf("is %.80q; write host:port such as 127.0.0.1:7443", addr)
	}
}

// anyPort reports whether an address asks for any free port.
func anyPort(addr string) bool { return strings.HasSuffix(addr, ":0") }
