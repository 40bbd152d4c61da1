package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/fleet/provision"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/unserved"
)

// endingLook is how often a run whose hosts scale-down is ending is looked at for a
// queued job, which would otherwise wait for these hosts without success.
const endingLook = 2 * time.Second

// provide requests a host for a queued job whose labels name its run, if the run needs
// one and may have it. The request is in the store before the webhook is finished.
func (h *webhookOp) provide(ctx context.Context, _ time.Time) (op.Progress, error) {
	facts, err := h.runFacts(ctx)
	if err != nil {
		return op.Again, err
	}
	switch why, err := h.lacksDefaults(ctx, facts); {
	case err != nil:
		return op.Again, err
	case why != "":
		return h.finish(why)
	}
	demand, why := facts.demand()
	if facts.ending && (demand != nil || facts.mayBegin()) {
		return op.Wait(endingLook), nil // a host counts against the run's maximum until it has ended
	}
	if last, _ := facts.last(); demand != nil && last.MaxHosts > 0 {
		if demand, why, err = h.stillAllowed(ctx, facts, demand, why); err != nil {
			return op.Again, err
		}
	}
	if demand == nil && facts.mayBegin() {
		demand, why, err = h.byRule(ctx, facts)
		if err != nil {
			return op.Again, err
		}
	}
	if demand == nil {
		return h.finish(why)
	}
	p, err := h.env.Provision.NewUnattended(*demand)
	if err != nil {
		return h.finish("not provisioned: " + err.Error())
	}
	h.Next = func(ctx context.Context, now time.Time) (op.Progress, error) {
		if _, err := p.Step(ctx, now); err != nil {
			return op.Again, err
		}
		h.env.submit("request "+demand.RequestID, p)
		return h.finish(why)
	}
	return op.Again, nil
}

// lacksDefaults returns why the job can run on no host of its run, or "": it names a default label, and the
// pool of the run's hosts has none. The pool is that of the last request, or of the rule.
func (h *webhookOp) lacksDefaults(ctx context.Context, facts runFacts) (string, error) {
	if !slices.ContainsFunc(h.row.Labels, policy.IsDefaultLabel) {
		return "", nil
	}
	pool := provision.DefaultPool
	if last, _ := facts.last(); last != nil {
		pool = last.Spec.Pool
	} else if err := h.askIDs(ctx); err != nil {
		return "", err
	} else if rule, ok := h.env.Options.Rules.Find(h.w.RepositoryID, h.w.OwnerID); ok && len(rule.Pools) > 0 {
		pool = rule.Pools[0]
	}
	if h.env.Pools[pool].DefaultLabels {
		return "", nil
	}
	why := unserved.LacksDefaults(h.row.ID, h.row.Labels, pool)
	return fmt.Sprintf("not provisioned: %s (%s)", why.Text, why.Code), nil
}

// runFacts is what is known about the run of a queued job.
type runFacts struct {
	job      lifecycle.Job
	requests []lifecycle.Request
	// jobs are the jobs of the run that are not done.
	jobs []lifecycle.Job
	// live has the keys of the hosts that serve the run and can take a job.
	live map[string]bool
	// ending is set when scale-down is ending other hosts of the run.
	ending bool
	// ended is set when the job is looked at again because a host of the run has ended.
	ended bool
}

func (h *webhookOp) runFacts(ctx context.Context) (runFacts, error) {
	facts := runFacts{job: h.row, live: map[string]bool{}, ended: h.w.Kind == lifecycle.WebhookHostEnded}
	var err error
	if facts.requests, err = h.env.Store.RequestsOfRun(ctx, h.row.Repository, h.row.RunID); err != nil {
		return facts, fmt.Errorf("list requests of run %s: %w", h.row.RunID, err)
	}
	h.env.runPools.note(h.row, facts.requests)
	jobs, err := h.env.Options.Store.OpenJobsOfRun(ctx, h.row.Repository, h.row.RunID)
	if err != nil {
		return facts, fmt.Errorf("list jobs of run %s: %w", h.row.RunID, err)
	}
	facts.jobs = jobs
	if !slices.ContainsFunc(jobs, func(j lifecycle.Job) bool { return j.ID == h.row.ID }) {
		facts.jobs = append(facts.jobs, h.row) // the index has not seen it yet
	}
	for _, q := range facts.requests {
		records, _, err := h.env.Hosts.OfRequest(ctx, q, nil)
		if err != nil {
			return facts, err
		}
		for _, r := range records {
			if r.ScalingDown() { // GitHub gives it no job, or scale-down takes its end back
				facts.ending = true
				continue
			}
			facts.live[r.HostKey] = true
		}
	}
	return facts, nil
}

// classOf is the resource class of the hosts that can take a job of a run.
func classOf(j lifecycle.Job) string {
	_, class, _ := policy.RunLabels(j.Labels, j.RunID)
	return cmp.Or(class, provision.DefaultResourceClass)
}

// open counts the run's open jobs of a resource class.
func (f runFacts) open(class string) int {
	n := 0
	for _, j := range f.jobs {
		if classOf(j) == class {
			n++
		}
	}
	return n
}

// standing counts the hosts that the run's requests have or wait for, of a resource
// class or, for "", of all. asked is one of these requests that a caller made, or "".
func (f runFacts) standing(class string) (hosts int, asked string) {
	for _, q := range f.requests {
		if q.Released() || class != "" && class != q.Spec.ResourceClass {
			continue
		}
		n := q.Spec.Count
		if q.Settled() {
			n = 0
			for _, t := range q.Taken {
				if f.live[t.HostKey] {
					n++
				}
			}
		}
		hosts += n
		if n > 0 && q.Kind == lifecycle.RequestByCaller {
			asked = q.RequestID
		}
	}
	return hosts, asked
}

// mayBegin reports whether no caller has asked for hosts of this run, so that a rule may.
func (f runFacts) mayBegin() bool {
	return !slices.ContainsFunc(f.requests, func(q lifecycle.Request) bool { return q.Kind == lifecycle.RequestByCaller })
}

// demand repeats the run's stored request for a job that is queued after the run's hosts are gone: a re-run
// of failed jobs comes without a call of Provision. It asks for one host for each open job, up to the number
// that was asked for then. Without a demand it returns the reason.
func (f runFacts) demand() (*provision.Demand, string) {
	hosts, asked := f.standing("")
	last, limit := f.last()
	switch {
	case asked != "":
		return nil, fmt.Sprintf("run %s has hosts, by request %s", f.job.RunID, asked)
	case last == nil:
		return nil, fmt.Sprintf("no caller asked for hosts of run %s", f.job.RunID)
	case f.job.RunAttempt < last.Spec.RunAttempt:
		return nil, fmt.Sprintf("ignored: job %d is of attempt %d, and attempt %d has hosts", f.job.ID, f.job.RunAttempt, last.Spec.RunAttempt)
	case hosts >= min(limit, len(f.jobs)):
		return nil, fmt.Sprintf("run %s has %s for %s, and may have %d", f.job.RunID, plural.Of(hosts, "host", "hosts"), plural.Of(len(f.jobs), "job", "jobs"), limit)
	}
	spec := last.Spec
	spec.RunAttempt = f.job.RunAttempt
	return f.one(spec, limit), fmt.Sprintf("job %d is queued and the hosts of run %s are gone: requested again", f.job.ID, f.job.RunID)
}

// one is a demand for one host, of a run that may have limit hosts.
func (f runFacts) one(spec lifecycle.Spec, limit int) *provision.Demand {
	spec.Count, spec.MinimumCount = 1, 1
	return &provision.Demand{
		Repository: f.job.Repository, RunID: f.job.RunID, Workflow: f.job.Workflow, Spec: spec, MaxHosts: limit,
		RequestID: f.requestID(), Kind: lifecycle.RequestByWebhook, Wait: arrival.Wait{QueuedAt: f.job.QueuedAt},
	}
}

// requestID is derived from the job, so repeated webhooks share one request. A second request is made only
// after a host of the run has ended, since it may have been this request's host.
func (f runFacts) requestID() string {
	first := fmt.Sprintf("webhook-%d-%d", f.job.RunAttempt, f.job.ID)
	id := first
	for n := 2; f.ended && slices.ContainsFunc(f.requests, func(q lifecycle.Request) bool { return q.RequestID == id }); n++ {
		id = fmt.Sprintf("%s-%d", first, n)
	}
	return id
}

// last returns the newest request that a caller made for the run, and how many hosts
// callers asked for in its attempt, up to what a rule allowed and provision.MaxCount.
func (f runFacts) last() (*lifecycle.Request, int) {
	var last *lifecycle.Request
	limit := 0
	for _, q := range f.requests {
		if q.Kind != lifecycle.RequestByCaller {
			continue
		}
		switch {
		case last == nil || q.Spec.RunAttempt > last.Spec.RunAttempt:
			last, limit = &q, q.Spec.Count
		case q.Spec.RunAttempt == last.Spec.RunAttempt:
			limit += q.Spec.Count
			if q.CreatedAt.After(last.CreatedAt) {
				last = &q
			}
		}
	}
	if last != nil && last.MaxHosts > 0 { // set by a rule: requests that the rule refused do not raise it
		limit = min(limit, last.MaxHosts)
	}
	return last, min(limit, provision.MaxCount)
}

// askIDs asks GitHub for the ids of the job's repository and its owner if the webhook
// has none, because the job was found in a list or is looked at again.
func (h *webhookOp) askIDs(ctx context.Context) error {
	if h.w.RepositoryID != 0 {
		return nil
	}
	run, err := h.env.Options.GitHub.WorkflowRun(ctx, h.row.Repository, h.row.RunID)
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
		return fmt.Errorf("ask GitHub about run %s: %w", h.row.RunID, err)
	}
	h.w.RepositoryID, h.w.OwnerID = run.RepositoryID, run.OwnerID
	return nil
}

// byRule is the demand of a run for which no caller asked, as the rule of its
// repository allows it. Without a demand it returns the reason.
func (h *webhookOp) byRule(ctx context.Context, facts runFacts) (*provision.Demand, string, error) {
	if err := h.askIDs(ctx); err != nil {
		return nil, "", err
	}
	rule, ok := h.env.Options.Rules.Find(h.w.RepositoryID, h.w.OwnerID)
	if !ok || !rule.Webhook {
		return nil, fmt.Sprintf("not provisioned: no rule with webhook: true is for %s", h.row.Repository), nil
	}
	class := classOf(h.row)
	all, _ := facts.standing("")
	hosts, _ := facts.standing(class)
	if all >= rule.MaxHosts || hosts >= facts.open(class) {
		return nil, fmt.Sprintf("run %s has %s, %d of class %s for %s, and may have %d", h.row.RunID, plural.Of(all, "host", "hosts"),
			hosts, class, plural.Of(facts.open(class), "job", "jobs"), rule.MaxHosts), nil
	}
	run, err := h.env.Options.GitHub.WorkflowRun(ctx, h.row.Repository, h.row.RunID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return nil, fmt.Sprintf("not provisioned: GitHub knows no run %s", h.row.RunID), nil
	case err != nil:
		return nil, "", fmt.Errorf("ask GitHub about run %s: %w", h.row.RunID, err)
	}
	if run.Status == lifecycle.StatusCompleted {
		return nil, fmt.Sprintf("not provisioned: run %s is over", h.row.RunID), nil
	}
	origin := originOf(h.w, run)
	spec := h.specByRule(rule, origin)
	spec.MaxRuntime = rule.Runtime(h.env.Hosts.Policy(cmp.Or(spec.Pool, provision.DefaultPool)).MaxRuntime)
	spec, err = h.env.Provision.Fill(spec)
	if err != nil {
		return nil, "not provisioned: " + err.Error(), nil
	}
	if _, verdict := h.env.Options.Rules.Admit(origin, spec); !verdict.Allowed {
		return nil, "not provisioned: " + verdict.Reason, nil
	}
	return facts.one(spec, rule.MaxHosts), fmt.Sprintf("job %d is queued and no caller asked for hosts of run %s: provisioned by its rule", h.row.ID, h.row.RunID), nil
}

// stillAllowed checks a repeated request, which a rule allowed once, against the
// current rules. It does not check ref and workflow file again: a run keeps both.
func (h *webhookOp) stillAllowed(ctx context.Context, facts runFacts, d *provision.Demand, why string) (*provision.Demand, string, error) {
	if err := h.askIDs(ctx); err != nil {
		return nil, "", err
	}
	rule, ok := h.env.Options.Rules.Find(h.w.RepositoryID, h.w.OwnerID)
	if !ok {
		return nil, fmt.Sprintf("not provisioned again: there is no rule for %s any more", h.row.Repository), nil
	}
	if hosts, _ := facts.standing(""); hosts >= rule.MaxHosts {
		return nil, fmt.Sprintf("run %s has %s, and may have %d", h.row.RunID, plural.Of(hosts, "host", "hosts"), rule.MaxHosts), nil
	}
	run, err := h.env.Options.GitHub.WorkflowRun(ctx, h.row.Repository, h.row.RunID)
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
		return nil, "", fmt.Errorf("ask GitHub about run %s: %w", h.row.RunID, err)
	}
	rule.Refs, rule.Workflows = nil, nil
	if _, verdict := (policy.Rules{rule}).Admit(originOf(h.w, run), d.Spec); !verdict.Allowed {
		return nil, "not provisioned again: " + verdict.Reason, nil
	}
	d.MaxHosts = min(d.MaxHosts, rule.MaxHosts)
	return d, why, nil
}

// specByRule is the spec of a request that a rule makes in the place of a caller.
func (h *webhookOp) specByRule(rule policy.Rule, origin policy.Origin) lifecycle.Spec {
	labels, class, _ := policy.RunLabels(h.row.Labels, h.row.RunID)
	spec := lifecycle.Spec{
		RunAttempt: h.row.RunAttempt, Count: 1, ResourceClass: class, Labels: labels,
		UsageClass: lifecycle.UsageOnDemand,
	}
	if len(rule.Pools) > 0 {
		spec.Pool = rule.Pools[0]
	}
	if len(rule.UsageClasses) > 0 {
		spec.UsageClass = rule.UsageClasses[0]
	}
	if rule.SpotForPullRequests && origin.FromPullRequest() {
		spec.UsageClass = lifecycle.UsageSpot
	}
	return spec
}

// originOf is where a run comes from, as GitHub describes it, without its ref: what GitHub calls the head
// branch may be a tag of that name, and anyone with push access can make one. So neither ref nor workflow
// file is known, and a rule that asks for either admits no run that comes without an ID token.
func originOf(w lifecycle.Webhook, run lifecycle.WorkflowRun) policy.Origin {
	o := policy.Origin{
		Repository: run.Repository, RepositoryID: w.RepositoryID, OwnerID: w.OwnerID, RunID: run.RunID,
		Event: run.Event, Fork: forkOf(run),
	}
	return o
}
