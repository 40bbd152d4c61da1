package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

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
		return fmt.Sprintf("%d hosts are more than the %d that the rule of %s allows a run", s.Count, r.MaxHosts, r.subject())
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
		case implicit(lower), lower == classLabel+s.ResourceClass:
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
