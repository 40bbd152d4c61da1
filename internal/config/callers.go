package config

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Callers is who may call the fleet, and what for.
type Callers struct {
	// Audience is that of the ID tokens that workflows show: controld's own
	// address, so that no token for anything else is taken.
	Audience string `yaml:"audience"`
	// Issuer is who gives workflows their ID tokens: GitHub, or an Enterprise
	// Server as https://HOST/_services/token.
	Issuer string `yaml:"issuer"`
	// Operators come with a certificate of grpc.tls.client_ca_file.
	Operators []Operator `yaml:"operators"`
	// Repositories are those whose workflows may ask for hosts.
	Repositories []CallerRule `yaml:"repositories"`
}

// Operator is a role of a certificate.
type Operator struct {
	// Subject of the certificate, in the text of RFC 2253, exactly.
	Subject string      `yaml:"subject"`
	Role    policy.Role `yaml:"role"`
}

// CallerRule is a policy.Rule as it is written.
type CallerRule struct {
	// RepositoryID is GitHub's id of Repository; without both the rule is for
	// every repository of OwnerID that has none of its own.
	RepositoryID int    `yaml:"repository_id"`
	Repository   string `yaml:"repository"`
	OwnerID      int    `yaml:"owner_id"`

	// Events, Refs and Workflows are patterns; none: any.
	Events    []string `yaml:"events"`
	Refs      []string `yaml:"refs"`
	Workflows []string `yaml:"workflows"`
	// Labels are patterns of runner labels that may be asked for beside the run's
	// id and remuda-<resource class>; none: no other.
	Labels []string `yaml:"labels"`
	// Pools may be asked for; none: only DefaultPool.
	Pools []string `yaml:"pools"`
	// ResourceClasses and UsageClasses may be asked for; none: the pool's.
	ResourceClasses []string               `yaml:"resource_classes"`
	UsageClasses    []lifecycle.UsageClass `yaml:"usage_classes"`
	// MaxHosts a run may have at once.
	MaxHosts int `yaml:"max_hosts"`
	// MaxRuntime is the longest that may be asked for; nil: the longest of the pools.
	MaxRuntime *time.Duration `yaml:"max_runtime"`
	// SpotForPullRequests allows them spot hosts only.
	SpotForPullRequests bool `yaml:"spot_for_pull_requests"`
	// Forks admits runs with a commit of a fork, which any GitHub user may have written.
	Forks bool `yaml:"forks"`
	// Webhook lets a queued job bring its run hosts by itself.
	Webhook bool `yaml:"webhook"`
}

// SetDefaults allow a run one host: more is for who writes it.
func (r *CallerRule) SetDefaults() { r.MaxHosts = 1 }

const (
	// maxGitHubID is above the ids that GitHub gives: they have 10 digits today.
	maxGitHubID = 10_000_000_000 - 1
	// maxRunHosts is the most that one Provision may ask for.
	maxRunHosts = 200
)

var (
	// callerSubject is one of at least one attribute, TYPE=value.
	callerSubject = regexp.MustCompile(`^[A-Za-z0-9.]+=[^\x00-\x1f\x7f]{1,500}$`)
	tokenAudience = regexp.MustCompile(`^[!-~]{1,256}$`)
)

// Roles are those of the operators by the subject of their certificate.
func (c Callers) Roles() map[string]policy.Role {
	roles := make(map[string]policy.Role, len(c.Operators))
	for _, o := range c.Operators {
		roles[o.Subject] = o.Role
	}
	return roles
}

// Rules are what the workflows of repositories may ask for.
func (c *Config) Rules() policy.Rules {
	rules := make(policy.Rules, 0, len(c.Callers.Repositories))
	for _, r := range c.Callers.Repositories {
		rules = append(rules, policy.Rule{
			RepositoryID: int64(r.RepositoryID), OwnerID: int64(r.OwnerID), Repository: r.Repository,
			Events: r.Events, Refs: r.Refs, Workflows: r.Workflows, Labels: r.Labels, Pools: r.Pools,
			ResourceClasses: r.ResourceClasses, UsageClasses: r.UsageClasses,
			MaxHosts: r.MaxHosts, MaxRuntime: c.ruleRuntime(r),
			SpotForPullRequests: r.SpotForPullRequests, Forks: r.Forks, Webhook: r.Webhook,
		})
	}
	return rules
}

// ruleRuntime is never 0, which would be no bound.
func (c *Config) ruleRuntime(r CallerRule) time.Duration {
	if r.MaxRuntime != nil {
		return *r.MaxRuntime
	}
	longest := time.Duration(0)
	for _, pool := range r.pools() {
		longest = max(longest, c.Policy(pool).MaxRuntime)
	}
	return longest
}

func (r CallerRule) pools() []string {
	if len(r.Pools) == 0 {
		return []string{DefaultPool}
	}
	return r.Pools
}

func (c *Config) validateCallers(root strictyaml.Place) {
	at := root.At("callers")
	c.validateOperators(root, at.At("operators"))
	c.Callers.validateTokens(at)
	rules := at.At("repositories")
	few(rules, len(c.Callers.Repositories))
	names := map[string]bool{}
	ids := map[[2]int]bool{}
	for i, r := range c.Callers.Repositories {
		item := rules.Item(i)
		c.validateRule(item, r)
		id := [2]int{r.RepositoryID, 0}
		if r.RepositoryID == 0 {
			id[1] = r.OwnerID
		}
		name := strings.ToLower(r.Repository)
		switch {
		case ids[id] && id != [2]int{}:
			item.Errorf("repeats the repository or owner of a rule above; remove one")
		case name != "" && names[name]:
			item.At("repository").Errorf("is here twice; remove one")
		}
		ids[id], names[name] = true, true
	}
}

// validateOperators: certificates and roles mean nothing without each other.
func (c *Config) validateOperators(root, at strictyaml.Place) {
	asked := c.GRPC.TLS != nil && c.GRPC.TLS.ClientCAFile != ""
	few(at, len(c.Callers.Operators))
	subjects := map[string]bool{}
	for i, o := range c.Callers.Operators {
		item := at.Item(i)
		switch {
		case !callerSubject.MatchString(o.Subject):
			item.At("subject").Errorf("is %.80q; write the subject of a certificate as RFC 2253 does, such as CN=alice,O=Acme", o.Subject)
		case subjects[o.Subject]:
			item.At("subject").Errorf("is here twice; remove one")
		}
		subjects[o.Subject] = true
		if o.Role == "" {
			item.At("role").Errorf("is missing; write viewer, operator or admin")
		}
	}
	switch {
	case asked && len(c.Callers.Operators) == 0:
		root.At("grpc", "tls", "client_ca_file").Errorf("identifies callers by certificate, and no certificate has a role; add callers.operators, or remove it")
	case !asked && len(c.Callers.Operators) > 0:
		at.Errorf("means nothing without certificates; add grpc.tls.client_ca_file or remove it")
	}
}

func (c Callers) validateTokens(at strictyaml.Place) {
	switch audience := at.At("audience"); {
	case c.Audience == "" && len(c.Repositories) > 0:
		audience.Errorf("is missing, and repositories need it; write this controld's own address, such as https://remuda.acme.com")
	case c.Audience == "":
	case len(c.Repositories) == 0:
		audience.Errorf("means nothing without repositories; add callers.repositories or remove it")
	case !tokenAudience.MatchString(c.Audience):
		audience.Errorf("is %.80q; write 1 to 256 characters without blanks, such as https://remuda.acme.com", c.Audience)
	case strings.HasPrefix(c.Audience, "https://github.com/"):
		audience.Errorf("is GitHub's default audience, which any token may have; write this controld's own address, such as https://remuda.acme.com")
	}
	baseURL(at.At("issuer"), c.Issuer, "the URL of an issuer; write https://token.actions.githubusercontent.com or https://HOST/_services/token",
		"would be asked for its keys in plaintext")
}

func (c *Config) validateRule(at strictyaml.Place, r CallerRule) {
	r.validateSubject(at)
	for _, list := range []struct {
		key      string
		patterns []string
	}{{"events", r.Events}, {"refs", r.Refs}, {"workflows", r.Workflows}, {"labels", r.Labels}} {
		patterns(at.At(list.key), list.patterns)
	}
	named(at.At("pools"), r.Pools, "pool", func(name string) bool { _, ok := c.Pools[name]; return ok })
	named(at.At("resource_classes"), r.ResourceClasses, "resource class", func(name string) bool { _, ok := c.ResourceClasses[name]; return ok })
	notEmpty(at.At("usage_classes"), len(r.UsageClasses))
	distinct(at.At("usage_classes"), r.UsageClasses)
	at.At("max_hosts").Number(r.MaxHosts, 1, maxRunHosts)
	if r.MaxRuntime != nil {
		at.At("max_runtime").Between(*r.MaxRuntime, time.Second, maxRuntime)
	}
	if r.Webhook && c.Webhooks == nil {
		at.At("webhook").Errorf("means nothing without webhooks, which announce jobs; add the webhooks section or remove it")
	}
}

// validateSubject: a rule is found by ids, and a name beside them tells a repository that was renamed.
func (r CallerRule) validateSubject(at strictyaml.Place) {
	id, name, owner := at.At("repository_id"), at.At("repository"), at.At("owner_id")
	if r.RepositoryID != 0 || id.Written() {
		id.Number(r.RepositoryID, 1, maxGitHubID)
	}
	if r.OwnerID != 0 || owner.Written() {
		owner.Number(r.OwnerID, 1, maxGitHubID)
	}
	switch {
	case r.RepositoryID == 0 && r.Repository != "" && !id.Written():
		name.Errorf("is there without repository_id, and names change hands; add its id (gh api repos/OWNER/NAME --jq .id)")
	case r.RepositoryID == 0 && r.OwnerID == 0 && !id.Written() && !owner.Written():
		at.Errorf("has neither repository_id nor owner_id; write one of them")
	case r.RepositoryID != 0 && !repositoryName.MatchString(r.Repository):
		name.Errorf("is %.80q; write the name that repository_id has, as owner/name", r.Repository)
	}
}

func patterns(at strictyaml.Place, list []string) {
	few(at, len(list))
	notEmpty(at, len(list))
	for i, p := range list {
		if err := policy.CheckPattern(p); err != nil {
			at.Item(i).Errorf("%s; write a pattern, in which * stands for any characters but a slash and ** for any", err)
		}
	}
	distinct(at, list)
}

// named checks a list of names of what is configured.
func named(at strictyaml.Place, list []string, what string, known func(string) bool) {
	few(at, len(list))
	notEmpty(at, len(list))
	for i, name := range list {
		if !known(name) {
			at.Item(i).Errorf("is no %s; there is none of the name %.80q", what, name)
		}
	}
	distinct(at, list)
}

// notEmpty: a list that was emptied to allow nothing would allow anything.
func notEmpty(at strictyaml.Place, n int) {
	if n == 0 && at.Written() {
		at.Errorf("is empty; write what is allowed, or leave it out for the default")
	}
}

// callerWarnings are sentences about rules that admit any caller.
func (c *Config) callerWarnings() []string {
	var warnings []string
	for _, r := range c.Callers.Repositories {
		if r.Webhook && len(r.Refs)+len(r.Workflows) > 0 {
			warnings = append(warnings, "callers.repositories has webhook: true for "+r.whose()+" beside refs or workflows, which only an ID token tells: no run is provisioned by webhook")
		}
		if r.Forks {
			warnings = append(warnings, "callers.repositories lets runs of forks of "+r.whose()+" have hosts: who opens a pull request runs what they like there")
		}
	}
	return warnings
}

// whose is the repository or owner that the rule is for.
func (r CallerRule) whose() string {
	if r.Repository != "" {
		return r.Repository
	}
	return "owner " + strconv.Itoa(r.OwnerID)
}
