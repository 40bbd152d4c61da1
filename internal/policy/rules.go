// Package policy holds decisions that are not about the life of one host: who may ask for what, and which
// jobs of a pool get a host now. All of it is pure: functions of facts that return what and why.
package policy

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// Rule is what the workflows of one repository, or of all repositories of one
// owner, may ask for. Names change hands on GitHub and ids do not, so a rule is
// found by id (docs.github.com, "OpenID Connect reference").
type Rule struct {
	// RepositoryID is the repository's id; 0: any repository of OwnerID.
	RepositoryID int64
	// OwnerID is the id of the user or organization; 0: the owner of RepositoryID.
	OwnerID int64
	// Repository is the name, "owner/name", that RepositoryID had when the rule
	// was written: under another name it is refused. Empty with an owner's rule.
	Repository string

	// Events, Refs and Workflows are patterns (see CheckPattern; * stops at a slash, and ** does not). One of
	// each must match; none: any. A workflow is named by its job_workflow_ref, "owner/name/path@ref".
	Events, Refs, Workflows []string

	// Pools may be asked for; none: only the default pool.
	Pools []string
	// ResourceClasses and UsageClasses may be asked for; none: those of the pool.
	ResourceClasses []string
	UsageClasses    []lifecycle.UsageClass
	// Labels are patterns of the runner labels that may be asked for, beside the run's id and
	// remuda-<resource class>. A label brings every job that names it to the host, those of other runs too,
	// so none is allowed by itself, and the id of another run never is.
	Labels []string
	// MaxHosts is how many hosts a run may have at once, 1 to 200.
	MaxHosts int
	// MaxRuntime is the longest that may be asked for. Who asks for none gets
	// that of the pool, or this where it is shorter: see Runtime. 0: no bound.
	MaxRuntime time.Duration
	// SpotForPullRequests allows runs of pull requests spot hosts only, without a fall-back to on-demand.
	SpotForPullRequests bool
	// Forks lets runs through whose commit is of a fork.
	Forks bool
	// Webhook lets a queued job bring its run hosts, without a call of Provision.
	Webhook bool
}

// Rules are all of them; the first that matches counts, a repository's own before its owner's.
type Rules []Rule

// Fork says whether a run's commit is of a fork.
type Fork string

// What is known of a fork.
const (
	ForkUnknown Fork = ""
	ForkYes     Fork = "yes"
	ForkNo      Fork = "no"
)

// Origin is where a run comes from, by its ID token or by GitHub's word.
type Origin struct {
	Repository            string
	RepositoryID, OwnerID int64
	RunID                 string
	// Event is the event that started it, Ref its git ref, Workflow its
	// job_workflow_ref. Empty: not known, which matches no pattern.
	Event, Ref, Workflow string
	Fork                 Fork
}

// Verdict says whether something is allowed, and why: a sentence for the log and for the refused caller.
type Verdict struct {
	Allowed bool
	Reason  string
}

// Find is the rule of a repository, or, if it has none of its own, that of its owner.
func (rs Rules) Find(repositoryID, ownerID int64) (Rule, bool) {
	i := slices.IndexFunc(rs, func(r Rule) bool { return r.RepositoryID != 0 && r.RepositoryID == repositoryID })
	if i < 0 {
		i = slices.IndexFunc(rs, func(r Rule) bool { return r.RepositoryID == 0 && r.OwnerID != 0 && r.OwnerID == ownerID })
	}
	if i < 0 {
		return Rule{}, false
	}
	return rs[i], true
}

// Admit says whether a run may have what it asks for, and by which rule. The defaults of s are filled in: see
// Rule.Runtime for the one that depends on the rule. Admit does not know how many hosts the run has by other
// requests: the caller compares their number with Rule.MaxHosts.
func (rs Rules) Admit(o Origin, s lifecycle.Spec) (Rule, Verdict) {
	r, found := rs.Find(o.RepositoryID, o.OwnerID)
	why := rs.unruled(o, r, found)
	checks := []func(Origin, lifecycle.Spec) string{r.refusesOrigin, r.refusesFork, r.refusesSpec, r.refusesUsage, r.refusesLabels}
	for _, check := range checks {
		if why == "" {
			why = check(o, s)
		}
	}
	if why != "" {
		return r, Verdict{Reason: why}
	}
	return r, Verdict{Allowed: true, Reason: fmt.Sprintf("the rule of %s allows it", r.subject())}
}

// unruled says why no rule matches an origin, or why the rule was written for
// another name or owner; "" if its rule matches. A known name with another id is a
// repository that took the name after the first was renamed or deleted.
func (rs Rules) unruled(o Origin, r Rule, found bool) string {
	for _, other := range rs {
		if other.RepositoryID != 0 && other.RepositoryID != o.RepositoryID && strings.EqualFold(other.Repository, o.Repository) {
			return fmt.Sprintf("repository %s has the id %d, and its rule is for %d, which had that name: if they are the same to you, write repository_id: %d",
				o.Repository, o.RepositoryID, other.RepositoryID, o.RepositoryID)
		}
	}
	switch {
	case !found:
		return fmt.Sprintf("repository %s (repository_id %d, owner_id %d) has no rule; add one to callers.repositories", o.Repository, o.RepositoryID, o.OwnerID)
	case r.RepositoryID != 0 && !strings.EqualFold(r.Repository, o.Repository):
		return fmt.Sprintf("repository %d is %s now, and its rule says %s: if it was renamed, write repository: %s",
			o.RepositoryID, o.Repository, r.Repository, o.Repository)
	case r.OwnerID != 0 && r.OwnerID != o.OwnerID:
		return fmt.Sprintf("repository %s belongs to owner %d now, and its rule says %d: if it was transferred, write owner_id: %d",
			o.Repository, o.OwnerID, r.OwnerID, o.OwnerID)
	}
	return ""
}

// subject is the repository or owner that the rule is for.
func (r Rule) subject() string {
	if r.RepositoryID == 0 {
		return fmt.Sprintf("owner %d", r.OwnerID)
	}
	return fmt.Sprintf("repository %s", r.Repository)
}

func (r Rule) refusesOrigin(o Origin, _ lifecycle.Spec) string {
	for _, one := range []struct {
		what, value string
		patterns    []string
	}{{"event", o.Event, r.Events}, {"ref", o.Ref, r.Refs}, {"workflow", o.Workflow, r.Workflows}} {
		switch {
		case len(one.patterns) == 0 || matchesAny(one.patterns, one.value):
		case one.value == "":
			return fmt.Sprintf("the %s of the run is not known, and the rule of %s wants one of %v", one.what, r.subject(), one.patterns)
		default:
			return fmt.Sprintf("the %s %s is none of %v, which the rule of %s allows", one.what, one.value, one.patterns, r.subject())
		}
	}
	return ""
}

// FromPullRequest reports whether the run may execute code that was proposed in a
// pull request. A run with an unknown event may.
func (o Origin) FromPullRequest() bool {
	return o.Event == "" || strings.HasPrefix(o.Event, "pull_request")
}

func (r Rule) refusesFork(o Origin, _ lifecycle.Spec) string {
	switch {
	case r.Forks || o.Fork == ForkNo:
	case o.Fork == ForkYes:
		return fmt.Sprintf("the run's commit is of a fork, and the rule of %s has forks: false", r.subject())
	case o.FromPullRequest() || o.Fork != ForkUnknown:
		return fmt.Sprintf("it is not known whether the run's commit is of a fork, and the rule of %s has forks: false", r.subject())
	}
	return ""
}

func (r Rule) refusesSpec(_ Origin, s lifecycle.Spec) string {
	pools := r.Pools
	if len(pools) == 0 {
		pools = []string{defaultPool}
	}
	switch {
	case !slices.Contains(pools, s.Pool):
		return fmt.Sprintf("pool %s is none of %v, which the rule of %s allows", s.Pool, pools, r.subject())
	case len(r.ResourceClasses) > 0 && !slices.Contains(r.ResourceClasses, s.ResourceClass):
		return fmt.Sprintf("resource class %s is none of %v, which the rule of %s allows", s.ResourceClass, r.ResourceClasses, r.subject())
	case s.Count < 1 || s.Count > r.MaxHosts:
		return fmt.Sprintf("%s more than the %d that the rule of %s allows a run", plural.Of(s.Count, "host is", "hosts are"), r.MaxHosts, r.subject())
	case r.MaxRuntime > 0 && (s.MaxRuntime <= 0 || s.MaxRuntime > r.MaxRuntime):
		return fmt.Sprintf("a runtime of %s is more than the %s that the rule of %s allows", s.MaxRuntime, r.MaxRuntime, r.subject())
	}
	return ""
}

// runID is how the ids of runs look, which are the labels of their hosts.
var runID = regexp.MustCompile(`^[0-9]+$`)

// refusesLabels: a runner is given every job whose labels it has, so a run that
// labels its hosts as it likes catches jobs of others.
func (r Rule) refusesLabels(_ Origin, s lifecycle.Spec) string {
	for _, l := range s.Labels {
		lower := strings.ToLower(l)
		switch {
		case IsDefaultLabel(l), lower == classLabel+s.ResourceClass: // the pool says whether its runners have them
		case runID.MatchString(l):
			return fmt.Sprintf("label %s may be the id of a run, whose jobs would come to this one's hosts", l)
		case !matchesAny(r.Labels, l):
			return fmt.Sprintf("label %.80q is none of %v, which the rule of %s allows: add it to labels", l, r.Labels, r.subject())
		}
	}
	return ""
}

// defaultPool is the pool of a request that names none, and all that a rule without pools allows.
const defaultPool = "default"

func (r Rule) refusesUsage(o Origin, s lifecycle.Spec) string {
	onDemand := s.UsageClass != lifecycle.UsageSpot || s.AllowOnDemand
	switch {
	case r.SpotForPullRequests && o.FromPullRequest() && onDemand:
		return fmt.Sprintf("a run of a pull request (event %q) may have spot hosts only, by the rule of %s: ask for spot without a fall-back to on-demand", o.Event, r.subject())
	case len(r.UsageClasses) == 0:
	case !slices.Contains(r.UsageClasses, s.UsageClass):
		return fmt.Sprintf("usage class %s is none of %v, which the rule of %s allows", s.UsageClass, r.UsageClasses, r.subject())
	case onDemand && !slices.Contains(r.UsageClasses, lifecycle.UsageOnDemand):
		return fmt.Sprintf("a fall-back to on-demand is none of %v, which the rule of %s allows", r.UsageClasses, r.subject())
	}
	return ""
}

// Runtime is the longest runtime of a host for who asks for none: that of the
// pool, or the rule's, the shorter.
func (r Rule) Runtime(pool time.Duration) time.Duration {
	if r.MaxRuntime > 0 && (pool <= 0 || r.MaxRuntime < pool) {
		return r.MaxRuntime
	}
	return pool
}

// classLabel begins the label by which a job of a run names its resource class.
const classLabel = "remuda-"

var resourceClass = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// The default labels: those that config.sh adds unless it is called with --no-default-labels, the same for all
// machines and by architecture. Jobs of anyone name them, so a runner with all three takes jobs of anyone.
var (
	universal     = []string{"self-hosted", "linux"}
	architectures = []string{"x64", "arm64"}
)

func isUniversal(label string) bool    { return slices.Contains(universal, label) }
func isArchitecture(label string) bool { return slices.Contains(architectures, label) }

// IsDefaultLabel reports whether a label is one of the default labels of GitHub's runner. Case does not matter.
func IsDefaultLabel(label string) bool {
	label = strings.ToLower(label)
	return isUniversal(label) || isArchitecture(label)
}

// WithDefaultLabels returns labels and, after them, the default labels of a machine's runner that they lack.
func WithDefaultLabels(labels []string, arch string) []string {
	machine := architectures[0]
	if arch == architectures[1] {
		machine = arch
	}
	all, set := slices.Clone(labels), setOf(labels)
	for _, l := range append(slices.Clone(universal), machine) {
		if !set[l] {
			all = append(all, l)
		}
	}
	return all
}

// labelSet holds labels in lower case: GitHub compares them so.
type labelSet map[string]bool

func setOf(labels []string) labelSet {
	set := labelSet{}
	for _, l := range labels {
		set[strings.ToLower(l)] = true
	}
	return set
}

// serves reports whether runners with the labels of s, and with defaults the default labels beside them, can
// take a job with those of job. distance is by how many labels that only one of the two has they differ.
func (s labelSet) serves(job labelSet, defaults bool) (distance int, ok bool) {
	named := false
	if job[architectures[0]] && job[architectures[1]] {
		return 0, false // no machine is both
	}
	for l := range job {
		switch {
		case s[l]:
			named = named || !IsDefaultLabel(l)
		case !defaults:
			return 0, false
		case isUniversal(l):
		case isArchitecture(l) && !s[architectures[0]] && !s[architectures[1]]:
			distance++ // its hosts may be of any
		default:
			return 0, false
		}
	}
	for l := range s {
		if !job[l] && !isUniversal(l) {
			distance++
		}
	}
	return distance, named
}

// PoolLabels are the labels of the runners of a pool.
type PoolLabels struct {
	Own []string
	// Default says that the runners have the default labels of GitHub's runner too.
	Default bool
}

// MatchPool returns the job pool that serves a job; pools are the labels of each pool by its name. A pool
// serves a job if all labels of the job are among the pool's own and at least one is no default label. With
// PoolLabels.Default a job may name the default labels too: self-hosted, linux, and x64 or arm64 unless the
// pool names one. Case does not matter. Of several pools the most specific counts: the one with the fewest
// labels that the job does not have, then the first by name.
func MatchPool(pools map[string]PoolLabels, labels []string) (name string, ok bool) {
	job, least := setOf(labels), 0
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		p := pools[pool]
		if distance, serves := setOf(p.Own).serves(job, p.Default); serves && (!ok || distance < least) {
			name, least, ok = pool, distance, true
		}
	}
	return name, ok
}

// ServesRepository reports whether a repository is among those that may use a job pool: names, or patterns
// such as acme/* in which a * stands for any characters but a slash. Case does not matter.
func ServesRepository(patterns []string, repository string) bool {
	repository = strings.ToLower(repository)
	return repository != "" && slices.ContainsFunc(patterns, func(p string) bool { return matches(strings.ToLower(p), repository) })
}

// RunLabels reports whether the labels of a job hold the id of its run, which says that it waits for the
// hosts of its run. rest are those that the runners need beside the run id, each once and as it was written; the
// label of the class is one of them. class is the resource class of a label such as remuda-large: empty where
// there is none, or more than one.
func RunLabels(labels []string, runID string) (rest []string, class string, ok bool) {
	seen, classes := labelSet{}, 0
	for _, l := range labels {
		lower := strings.ToLower(l)
		if l == runID && runID != "" {
			ok = true
			continue
		}
		if seen[lower] {
			continue
		}
		seen[lower] = true
		rest = append(rest, l)
		if c, found := strings.CutPrefix(lower, classLabel); found && resourceClass.MatchString(c) {
			class = c
			classes++
		}
	}
	switch {
	case !ok:
		return nil, "", false
	case classes != 1:
		class = ""
	}
	return rest, class, true
}

// MaxPattern is the longest pattern there may be, in bytes.
const MaxPattern = 256

// CheckPattern says what is wrong with a pattern of a Rule. Everything in it but * stands for itself, so
// nothing that has a meaning in other patterns is taken: it would never match what its author thought of.
func CheckPattern(p string) error {
	switch {
	case p == "":
		return errors.New("is empty")
	case len(p) > MaxPattern:
		return errors.New("is longer than 256 bytes")
	case strings.Contains(p, "***"):
		return errors.New("has three stars in a row")
	case strings.HasPrefix(p, "!") || strings.ContainsAny(p, `?[]{}\`) || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("has a character that is neither a star nor stands for itself")
	}
	return nil
}

func matchesAny(patterns []string, s string) bool {
	return s != "" && slices.ContainsFunc(patterns, func(p string) bool { return matches(p, s) })
}

// stars makes an expression of a quoted pattern. The longer pair comes first, so it wins.
var stars = strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`)

// matches holds a whole string against a pattern: * stands for any characters
// but a slash, ** for any. What CheckPattern refuses matches nothing.
func matches(pattern, s string) bool {
	if CheckPattern(pattern) != nil {
		return false
	}
	re, err := regexp.Compile(`(?s)\A` + stars.Replace(regexp.QuoteMeta(pattern)) + `\z`)
	return err == nil && re.MatchString(s)
}

// Role is what an operator may do.
type Role string

// The roles: each may do all that those before it may.
const (
	RoleViewer   Role = "viewer"   // reads
	RoleOperator Role = "operator" // and orders hosts, releases runs, refreshes, holds
	RoleAdmin    Role = "admin"    // and ends hosts by order
)

// Roles lists every role, the least first.
var Roles = []Role{RoleViewer, RoleOperator, RoleAdmin}

// Includes reports whether r may do all that least may. No unknown role
// includes any, nor is any unknown one included.
func (r Role) Includes(least Role) bool {
	have, want := slices.Index(Roles, r), slices.Index(Roles, least)
	return have >= 0 && want >= 0 && have >= want
}
