package provision

import (
	"errors"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
)

// Demand says which run asks for hosts, and for which ones.
type Demand struct {
	Repository string
	RunID      string
	// RequestID names the request. A call that repeats it resumes the request.
	RequestID string
	Spec      lifecycle.Spec
	// DefaultRuntime: the caller left the maximum runtime out. The default follows the configuration and the version, which may change before a repeat.
	DefaultRuntime bool
	// Workflow is the name of the run's workflow; empty: it is not known.
	Workflow string
	// MaxHosts is how many hosts the run may have at once, over all its requests; 0 means any number.
	MaxHosts int
	// Kind is what the request is for; empty: lifecycle.RequestByCaller.
	Kind lifecycle.RequestKind
	// Wait is what its job has waited for already.
	Wait arrival.Wait
}

// NewProvision begins a request, or resumes the one that has its id. It fills in the
// defaults of the spec and returns *hosts.InvalidError if the spec is not valid.
func (pr *Provisioner) NewProvision(d Demand) (*Provision, error) {
	d.DefaultRuntime = d.DefaultRuntime || d.Spec.MaxRuntime == 0
	spec, err := pr.Fill(d.Spec)
	if err != nil {
		return nil, err
	}
	d.Spec, d.Repository = spec, lifecycle.Canonical(d.Repository)
	if d.Spec.JobsOf != "" && pr.GitHubJobs == nil {
		return nil, errors.New("request a job-scoped host: this fleet has no job pools")
	}
	p := &Provision{env: pr, Stages: pr.Ops.Stages(""), demand: d, attended: true, dead: map[string]lifecycle.Machine{}, heard: map[string]lifecycle.Report{}}
	p.q.Wait = d.Wait
	p.Next = p.step
	return p, nil
}

// NewUnattended begins a request that no caller waits for: its hosts return to the pool if they get no job.
func (pr *Provisioner) NewUnattended(d Demand) (*Provision, error) {
	p, err := pr.NewProvision(d)
	if err != nil {
		return nil, err
	}
	p.attended = false
	return p, nil
}

// Resume continues a request that stood still.
func (pr *Provisioner) Resume(q lifecycle.Request) *Provision {
	p := &Provision{env: pr, Stages: pr.Ops.Stages(""), q: q, exists: true, dead: map[string]lifecycle.Machine{}, heard: map[string]lifecycle.Report{}}
	p.demand = Demand{Repository: q.Repository, RunID: q.RunID, RequestID: q.RequestID, Spec: q.Spec}
	p.Next = p.step
	return p
}
