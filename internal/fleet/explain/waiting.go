package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/listing"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/waiting"
)

// waitingRead is how many waiting jobs of a pool are read to find the place of one.
const waitingRead = 1000

// poolLine is what waits for a job pool, read once for all of it.
type poolLine struct {
	ex    *Explainer
	pool  string
	jobs  []lifecycle.Job
	more  bool
	table slots.Table
	pause pause.Pause
	// requests are those of slots, by slot; nil: there is none. budgets are those against repositories; nil: there is none.
	requests map[int64]*lifecycle.Request
	budgets  map[string]*budget.Use
}

// lineOf reads the first waiting jobs of a pool, its slots and its pause.
func (ex *Explainer) lineOf(ctx context.Context, pool string, most int, now time.Time) (*poolLine, error) {
	l := &poolLine{ex: ex, pool: pool, requests: map[int64]*lifecycle.Request{}, budgets: map[string]*budget.Use{}}
	page, err := ex.JobStore.WaitingJobs(ctx, pool, lifecycle.PageOf{Limit: most})
	if err != nil {
		return nil, fmt.Errorf("list the waiting jobs of pool %s: %w", pool, err)
	}
	l.jobs, l.more = page.Items, page.Next != ""
	if l.pause, err = ex.PauseOf(ctx, pool, now); err != nil {
		return nil, err
	}
	if l.table, err = ex.JobStore.SlotTable(ctx, pool); err != nil {
		return nil, fmt.Errorf("read the slots of pool %s: %w", pool, err)
	}
	return l, nil
}

// facts are what is known about one of the jobs, or about one that is behind those that were read.
func (l *poolLine) facts(ctx context.Context, j lifecycle.Job, now time.Time) (f waiting.Facts, err error) {
	f = waiting.Facts{
		Job: j, Maximum: l.ex.JobPools[j.Pool].Maximum, AwaySince: l.ex.Hosts.GitHubHealth.AwaySince(now),
		Listed: len(l.jobs), More: l.more, Open: l.table.Open, Pause: l.pause,
	}
	for i, o := range l.jobs {
		if o.ID == j.ID {
			f.Place = i + 1
			break
		}
		budget, err := l.budget(ctx, o.Repository, now)
		if err != nil {
			return f, err
		}
		if strings.EqualFold(o.Scope, j.Scope) && budget == nil && !o.PassedOver(now) {
			f.Before++
		}
	}
	if f.Budget, err = l.budget(ctx, j.Repository, now); err != nil {
		return f, err
	}
	if slot := f.Slot(); slot != nil {
		f.Request, err = l.request(ctx, *slot)
	}
	return f, err
}

// budget finds the budget against a repository, once.
func (l *poolLine) budget(ctx context.Context, repository string, now time.Time) (*budget.Use, error) {
	u, known := l.budgets[repository]
	if known {
		return u, nil
	}
	u, err := l.ex.BudgetAgainst(ctx, repository, now)
	if err == nil {
		l.budgets[repository] = u
	}
	return u, err
}

// request reads the request of a slot, once; nil: it is about to be written.
func (l *poolLine) request(ctx context.Context, s slots.Slot) (*lifecycle.Request, error) {
	if q, ok := l.requests[s.Number]; ok {
		return q, nil
	}
	q, err := l.ex.Store.Request(ctx, s.Repository, s.RunID(l.pool), s.RunID(l.pool))
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		l.requests[s.Number] = nil
	case err != nil:
		return nil, fmt.Errorf("read the request of slot %d: %w", s.Number, err)
	default:
		l.requests[s.Number] = &q
	}
	return l.requests[s.Number], nil
}

// Wait is a request or a job that has no host yet, or not all of its hosts.
type Wait struct {
	Pool, Repository, RunID string
	// RequestID is empty for a job, and Job zero for a request.
	RequestID string
	Job       lifecycle.Job
	Since     time.Time
	// Missing is how many hosts it lacks.
	Missing int
	// Line says which job it is of those that wait for the pool; see waiting.Facts.Line.
	Line string
	waiting.Answer
}

// mostRequests bounds the due requests that are read.
const mostRequests = 2000

// Waiting lists what waits for hosts, the longest first, of one pool, or of all: open requests, and the jobs of job pools. Of each pool, and
// of all requests, at most so many are listed; more reports whether there are others.
func (ex *Explainer) Waiting(ctx context.Context, pool string, most int, now time.Time) (all []Wait, more bool, err error) {
	all, more, err = ex.WaitingRequests(ctx, pool, now)
	if err != nil {
		return nil, false, err
	}
	for _, name := range slices.Sorted(maps.Keys(ex.JobPools)) {
		if pool != "" && pool != name {
			continue
		}
		line, err := ex.lineOf(ctx, name, most, now)
		if err != nil {
			return nil, false, err
		}
		more = more || line.more
		for _, j := range line.jobs {
			f, err := line.facts(ctx, j, now)
			if err != nil {
				return nil, false, err
			}
			all = append(all, Wait{
				Pool: name, Repository: j.Repository, RunID: j.RunID, Job: j, Since: j.QueuedAt, Missing: 1, Line: f.Line(), Answer: waiting.Why(f, now),
			})
		}
	}
	slices.SortStableFunc(all, func(a, b Wait) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Job.ID, b.Job.ID)) })
	if len(all) > most {
		all, more = all[:most], true
	}
	return all, more, nil
}

// WaitingRequests lists the open requests of one pool, or of all: those of callers and webhooks, and those for replacements. Each is due within
// moments, since the replica that works on it says so in its row. more: there are others, beyond the first 2000.
func (ex *Explainer) WaitingRequests(ctx context.Context, pool string, now time.Time) (all []Wait, more bool, err error) {
	list := func(page lifecycle.PageOf) (lifecycle.Page[lifecycle.Request], error) {
		return ex.Store.DueRequests(ctx, now.Add(time.Hour), page)
	}
	read := 0
	for q, err := range listing.All(lifecycle.PageOf{Limit: mostRequests}, list) {
		if err != nil {
			return nil, false, fmt.Errorf("list open requests: %w", err)
		}
		if read++; read > mostRequests {
			return all, true, nil
		}
		of := q.Kind == lifecycle.RequestByCaller || q.Kind == lifecycle.RequestByWebhook || q.Kind == lifecycle.RequestReplacement
		if q.Settled() || q.Released() || !of || pool != "" && pool != q.Spec.Pool {
			continue
		}
		why, err := ex.whyRequest(ctx, q, now)
		if err != nil {
			return nil, false, err
		}
		all = append(all, Wait{
			Pool: q.Spec.Pool, Repository: q.Repository, RunID: q.RunID, RequestID: q.RequestID, Since: q.CreatedAt, Missing: max(q.Missing(), 0),
			Answer: why,
		})
	}
	return all, false, nil
}
