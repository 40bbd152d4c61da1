package sweeps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// LostHostJobs provides hosts for jobs that lost theirs.
type LostHostJobs interface {
	// RunOf asks for the run of jobs and its ids that the rules go by, once for all
	// of them. The run is empty where GitHub does not answer or no rule needs it.
	RunOf(ctx context.Context, jobs []lifecycle.Job) lifecycle.WorkflowRun
	// ProvideAgain handles a waiting job that lost host as if its webhook came now. It is safe to repeat.
	ProvideAgain(ctx context.Context, host lifecycle.Record, j lifecycle.Job, run lifecycle.WorkflowRun, now time.Time) error
}

// left are the hosts of one page of the due sweep that ended and left a run behind. All had ended before the
// first of their runs is looked at, so that hosts of one run and the same labels need one look.
type left struct {
	hosts    []lifecycle.Record
	requests map[string]*lifecycle.Request
	// looked are the runs whose jobs were looked at, with class and labels.
	looked map[string]bool
	// jobs wait for a host in place of the first of hosts, and run is theirs.
	jobs []lifecycle.Job
	run  lifecycle.WorkflowRun
}

// state is part of the sweep's. The run follows from the jobs.
func (l left) state() []any { return []any{l.hosts, l.requests, l.looked, l.jobs} }

func newLeft() left {
	return left{requests: map[string]*lifecycle.Request{}, looked: map[string]bool{}}
}

// lookAtLeft looks at the run that the next host has left. When the webhook of a job came the
// host may still have been there, and no other sweep comes back to the job; and the request
// needs less room now. The record has the note until this is done.
func (s *DueSweep) lookAtLeft(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.left.hosts) == 0 {
		s.stage = describing
		return op.Again, nil
	}
	host := s.left.hosts[0]
	host.RunID, host.RequestID, host.Labels = host.LostBy.RunID, host.LostBy.RequestID, host.LostBy.Labels
	q, err := s.env.Hosts.RequestOf(ctx, host, s.left.requests)
	switch {
	case !s.Past(ctx, err):
		return op.Again, err
	case err != nil: // what it needs is unknown, and its jobs are looked at anyway
	case q == nil || q.Released() || !q.Settled(): // an open one looks for another host by itself
		return s.lookedAtLeft(ctx)
	default:
		served, err := s.env.Quota.HostLeft(ctx, *q, now)
		switch {
		case errors.Is(err, lifecycle.ErrConflict):
			clear(s.left.requests) // it moved: look again
			return op.Again, nil
		case !s.Past(ctx, err):
			return op.Again, err
		case err == nil:
			*q = served
		}
	}
	if host.ReplacedBy != "" {
		return s.lookedAtLeft(ctx) // its request asks for another by itself
	}
	key := strings.Join(append([]string{lifecycle.RunKey(host.Repository, host.RunID), host.ResourceClass}, host.Labels...), "\x00")
	if s.left.looked[key] {
		return s.lookedAtLeft(ctx)
	}
	jobs, err := s.env.Hosts.WaitingJobs(ctx, host)
	if !s.Past(ctx, err) {
		return op.Again, err
	}
	s.left.looked[key] = true
	s.stage, s.left.jobs, s.left.run = providing, jobs, s.env.runOf(ctx, jobs)
	return op.Again, nil
}

// runOf is the run of jobs; see LostHostJobs.
func (sw *Sweeps) runOf(ctx context.Context, jobs []lifecycle.Job) lifecycle.WorkflowRun {
	if len(jobs) == 0 {
		return lifecycle.WorkflowRun{}
	}
	return sw.LostJobs.RunOf(ctx, jobs)
}

// provide has the next of the jobs looked at as if its webhook came now.
func (s *DueSweep) provide(ctx context.Context, now time.Time) (op.Progress, error) {
	l := &s.left
	if len(l.jobs) == 0 {
		return s.lookedAtLeft(ctx)
	}
	if err := s.env.LostJobs.ProvideAgain(ctx, l.hosts[0], l.jobs[0], l.run, now); !s.Past(ctx, err) {
		return op.Again, err
	}
	l.jobs = l.jobs[1:]
	return op.Again, nil
}

// lookedAtLeft notes that nothing is left to be looked at. The machine follows.
func (s *DueSweep) lookedAtLeft(ctx context.Context) (op.Progress, error) {
	r := s.left.hosts[0]
	r.LostBy = nil
	stored, err := s.env.Store.UpdateInstance(ctx, r)
	switch {
	case errors.Is(err, lifecycle.ErrConflict): // another replica did it: the next sweep goes on
	case err != nil:
		if err = fmt.Errorf("write host %s: %w", r.InstanceID, err); !s.Past(ctx, err) {
			return op.Again, err
		}
	default:
		s.ending = append(s.ending, stored)
	}
	s.left.hosts, s.stage = s.left.hosts[1:], lookingAtLeft
	return op.Again, nil
}
