package policy

import (
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
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
