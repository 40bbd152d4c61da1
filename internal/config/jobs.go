package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Jobs makes a pool a job pool: jobs whose labels match are given hosts, each registered for exactly one job.
type Jobs struct {
	// Labels are those of the pool's runners. A job is served whose labels are
	// all among them. With Pool.DefaultLabels it may name GitHub's default labels too.
	Labels []string `yaml:"labels"`
	// ResourceClass, UsageClass, InstanceTypes and AllowOnDemandFallback are what
	// each host is asked for with, as in a Provision.
	ResourceClass         string               `yaml:"resource_class"`
	UsageClass            lifecycle.UsageClass `yaml:"usage_class"`
	InstanceTypes         []string             `yaml:"instance_types"`
	AllowOnDemandFallback bool                 `yaml:"allow_on_demand_fallback"`
	// Minimum hosts wait for a job, launched, clean and without a registration. They are paid for all the time.
	Minimum int `yaml:"minimum"`
	// RegisteredMinimum has those hosts registered, which saves each job the start of a listener, 3 to 5 seconds.
	// GitHub removes idle just-in-time runners after minutes, so each of them is registered again and again.
	RegisteredMinimum bool `yaml:"registered_minimum"`
	// Maximum hosts are at work or wait at once. Jobs beyond it wait.
	Maximum int `yaml:"maximum"`
	// Repositories are those whose jobs are served: names, or patterns such as acme/*.
	Repositories []string `yaml:"repositories"`
	// Forks admits jobs with a commit of a fork, which any GitHub user may have written.
	Forks bool `yaml:"forks"`
}

// SetDefaults are those of a Provision.
func (j *Jobs) SetDefaults() {
	j.ResourceClass = defaultResourceClass
	j.UsageClass = lifecycle.UsageOnDemand
	j.InstanceTypes = []string{"c*", "m*", "r*"}
}

// Spec is what each host is asked for with.
func (j *Jobs) Spec() lifecycle.Spec {
	return lifecycle.Spec{ResourceClass: j.ResourceClass, UsageClass: j.UsageClass, InstanceTypes: j.InstanceTypes, AllowOnDemand: j.AllowOnDemandFallback}
}

// Ahead is what the pool launches ahead of need, or nil for nothing: its warm hosts, or the minimum of its jobs
// that is not registered.
func (p Pool) Ahead() *Warm {
	j := p.Jobs
	if p.Warm != nil || j == nil || j.Minimum == 0 || j.RegisteredMinimum {
		return p.Warm
	}
	w := &Warm{}
	w.SetDefaults()
	w.MinimumIdle = j.Minimum
	w.ResourceClass, w.UsageClass, w.InstanceTypes, w.AllowOnDemandFallback = j.ResourceClass, j.UsageClass, j.InstanceTypes, j.AllowOnDemandFallback
	if p.MaxAge > 0 {
		w.Lead = min(w.Lead, p.MaxAge/2)
	}
	return w
}

// validateMinimum checks the hosts that wait for a job.
func (c *Config) validateMinimum(at strictyaml.Place, pool string, j *Jobs) {
	at = at.At("minimum")
	at.Number(j.Minimum, 0, maxJobHosts)
	p := c.Pools[pool]
	switch {
	case j.Minimum > j.Maximum:
		at.Errorf("is %d, more than maximum (%d); write at most as much", j.Minimum, j.Maximum)
	case j.Minimum > 0 && !j.RegisteredMinimum && p.Warm != nil:
		at.Errorf("is %d, and the pool has a warm section, which keeps such hosts too; write 0 and warm.minimum_idle, or registered_minimum: true", j.Minimum)
	case p.Maximum != nil && j.Minimum > *p.Maximum:
		at.Errorf("is %d, more than the pool's maximum (%d); write at most as much", j.Minimum, *p.Maximum)
	}
}

// validateSpec checks what the hosts of a job pool or a warm pool are asked for with.
func (c *Config) validateSpec(at strictyaml.Place, pool string, s lifecycle.Spec) {
	if classes := c.PoolResourceClasses(pool); !slices.Contains(classes, s.ResourceClass) {
		at.At("resource_class").Errorf("is %.80q, and not of this pool; write one of %s", s.ResourceClass, strings.Join(classes, ", "))
	}
	if classes := c.PoolUsageClasses(pool); !slices.Contains(classes, s.UsageClass) {
		at.At("usage_class").Errorf("is %s, and not of this pool; write %s", s.UsageClass, classes[0])
	}
	if s.AllowOnDemand && s.UsageClass != lifecycle.UsageSpot {
		at.At("allow_on_demand_fallback").Errorf("means nothing with usage_class: %s; leave it out", s.UsageClass)
	}
	words(at.At("instance_types"), s.InstanceTypes, instancePattern, "a pattern such as c6i.* or c*")
	if len(s.InstanceTypes) == 0 {
		at.At("instance_types").Errorf("is empty; write at least one pattern such as c*, or leave it out")
	}
}

const (
	defaultResourceClass = "large"
	// maxJobHosts is how many hosts a job pool may have: its turns are one row.
	maxJobHosts = 1000
	// maxJobLabels is how many labels a Provision may ask for.
	maxJobLabels = 20
)

var (
	jobLabel          = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	runLabel          = regexp.MustCompile(`^[0-9]+$`)
	repositoryPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,39}/[A-Za-z0-9._*-]{1,100}$`)
)

// universalLabels are the default labels of GitHub's runner that do not depend on the machine.
var universalLabels = []string{"self-hosted", "linux"}

// validateJobs checks the job pools, alone and against each other.
func (c *Config) validateJobs(root strictyaml.Place) {
	named := map[string]string{} // the pool that has these labels
	for _, name := range slices.Sorted(maps.Keys(c.Pools)) {
		j := c.Pools[name].Jobs
		if j == nil {
			continue
		}
		pool := root.At("pools", name)
		at := pool.At("jobs")
		if c.Webhooks == nil {
			at.Errorf("means nothing without webhooks, which announce jobs; add the webhooks section or remove it")
		}
		c.validateJobPool(at, name, j)
		c.validateJobScope(pool, name, j)
		labels := labelKey(j.Labels)
		if other, taken := named[labels]; taken && labels != "" {
			at.At("labels").Errorf("are those of pool %s too; write others, so that each job has one pool", other)
			continue
		}
		named[labels] = name
	}
}

func (c *Config) validateJobPool(at strictyaml.Place, pool string, j *Jobs) {
	validateJobLabels(at.At("labels"), j.Labels, c.Pools[pool].DefaultLabels)
	c.validateSpec(at, pool, j.Spec())
	at.At("maximum").Number(j.Maximum, 1, maxJobHosts)
	c.validateMinimum(at, pool, j)
	words(at.At("repositories"), j.Repositories, repositoryPattern, "a repository as owner/name, or a pattern such as owner/*")
	if len(j.Repositories) == 0 {
		at.At("repositories").Errorf("is empty, so no repository could use the pool; write at least one repository, or a pattern such as owner/*")
	}
}

// validateJobScope checks that a registered minimum names the repository or owner that its hosts
// wait for: at organization scope they take the jobs of any of its repositories.
func (c *Config) validateJobScope(at strictyaml.Place, pool string, j *Jobs) {
	minimum, registered := at.At("jobs", "minimum"), j.Minimum > 0 && j.RegisteredMinimum
	if c.GitHub.Scope != ScopeOrganization {
		if registered && (len(j.Repositories) != 1 || strings.Contains(j.Repositories[0], "*")) {
			minimum.Errorf("needs repositories to be one, without a *: a host that waits is registered with one; write that one, or registered_minimum: false")
		}
		return
	}
	owners := map[string]bool{}
	for _, r := range j.Repositories {
		owner, _, _ := strings.Cut(r, "/")
		owners[strings.ToLower(owner)] = true
	}
	if registered && len(owners) != 1 {
		minimum.Errorf("needs repositories to be of one owner: a host that waits is registered with one; write those of one owner, or registered_minimum: false")
	}
	if c.Pools[pool].Reuse == lifecycle.ReuseSameRepository {
		at.At("reuse").Errorf("is %s, and the hosts of a job pool take jobs of any repository of the organization (github.scope); write %s or %s",
			lifecycle.ReuseSameRepository, lifecycle.ReuseSameOwner, lifecycle.ReuseNone)
	}
}

func validateJobLabels(at strictyaml.Place, labels []string, defaults bool) {
	words(at, labels, jobLabel, "a label of 1 to 64 of a-z A-Z 0-9 . _ -")
	for i, l := range labels {
		if runLabel.MatchString(l) {
			at.Item(i).Errorf("is a number, as the ids of runs are; write a word")
		}
	}
	switch {
	case labelKey(labels) == "" && !slices.Contains(labels, ""): // an empty or unreadable label is reported already
		at.Errorf("has nothing but GitHub's default labels; write at least one label of its own, such as remuda-small")
	case len(labels) > maxJobLabels:
		at.Errorf("has %d entries; write at most %d", len(labels), maxJobLabels)
	case !defaults:
		for i, l := range labels {
			if policy.IsDefaultLabel(l) {
				at.Item(i).Errorf("is a default label of GitHub's runner, which jobs of anyone name; remove it, or write default_labels: true for the pool")
			}
		}
	}
}

// labelKey is the same for labels that mean the same: GitHub compares them
// without case, and default labels of every machine tell no pool from another.
func labelKey(labels []string) string {
	var own []string
	machines := 0
	for _, l := range labels {
		l = strings.ToLower(l)
		if slices.Contains(universalLabels, l) {
			continue
		}
		if l == "x64" || l == "arm64" {
			machines++
		}
		own = append(own, l)
	}
	if len(own) == machines {
		return ""
	}
	slices.Sort(own)
	return strings.Join(slices.Compact(own), " ")
}
