package costs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/recent"
)

// Budgets knows how much of each budget is used. Its fields are set before the first call. It is safe for concurrent use.
type Budgets struct {
	Costs *Costs
	List  budget.List
	// Lag is how old what is known may be: to know more reads the hosts that live and what was used on two days.
	Lag   time.Duration
	Store Once
	Log   hclog.Logger

	reads recent.Answers[knownUses]

	mu sync.Mutex
	// spent is what the last read has summed up. A read of another month beside it may replace it: then the next read begins with the month.
	spent spending
	// known is the outcome of the last read.
	known knownUses
}

// Once remembers what was reported already.
type Once interface {
	// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered already.
	SeeOnce(ctx context.Context, kind, id string, until time.Time) error
}

// Uses are how much of each budget is used in this month, as it was at readAt, at most Lag ago. Callers who find that it is older share one
// read, which outlives the call that began it.
func (b *Budgets) Uses(ctx context.Context, now time.Time) (uses []budget.Use, readAt time.Time, err error) {
	q := recent.Question{Key: meter.MonthOf(meter.DayOf(now)), Now: now, Young: b.Lag, Within: readWithin} // in a new month nothing is spent yet
	k, err := b.reads.Get(ctx, q, func(ctx context.Context) (knownUses, error) { return b.read(ctx, now) })
	return k.uses, k.readAt, err
}

// readWithin bounds a read of what was spent.
const readWithin = time.Minute

// knownUses are what is known of the budgets.
type knownUses struct {
	uses   []budget.Use
	readAt time.Time
}

// Against finds the budget that keeps a repository's runs from more hosts; nil: none does.
func (b *Budgets) Against(ctx context.Context, repository string, now time.Time) (*budget.Use, error) {
	if !slices.ContainsFunc(b.List, func(l budget.Budget) bool { return l.Covers(repository) }) {
		return nil, nil
	}
	uses, _, err := b.Uses(ctx, now)
	return budget.Against(repository, uses), err
}

// read adds up what was spent since the month began.
func (b *Budgets) read(ctx context.Context, now time.Time) (knownUses, error) {
	b.mu.Lock()
	before := b.spent
	b.mu.Unlock()
	month := meter.MonthOf(meter.DayOf(now))
	report, spent, err := b.Costs.since(ctx, month, before, now)
	if err != nil {
		return knownUses{}, fmt.Errorf("read how much of the budgets is used: %w", err)
	}
	b.mu.Lock()
	b.spent = spent
	b.mu.Unlock()
	dollars := map[string]float64{}
	for _, row := range report.Rows {
		dollars[row.Repository] += row.Dollars
	}
	return b.know(knownUses{b.List.Uses(month, dollars), now}), nil
}

// know keeps the outcome of a read, with since when each budget is used up: since the read that saw it first. Of one that was used up when this
// replica began, that is not known.
func (b *Budgets) know(k knownUses) knownUses {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range k.uses {
		u := &k.uses[i]
		if before := b.known.of(*u); u.State() == budget.UsedUp && before != nil {
			if u.Since = before.Since; before.State() != budget.UsedUp {
				u.Since = k.readAt
			}
		}
	}
	b.known = k
	return k
}

// of is a budget as it was known in the same month; nil: it was not.
func (k knownUses) of(u budget.Use) *budget.Use {
	for i, known := range k.uses {
		if known.Budget == u.Budget && known.Month == u.Month {
			return &k.uses[i]
		}
	}
	return nil
}

// BudgetSweep sees how much of the budgets is used, and reports each that is near its end or used up, at most once in the month.
type BudgetSweep struct {
	op.Stages
	env *Budgets
	// news are the budgets that are left to be reported.
	news []budget.Use
}

// NewSweep begins a sweep.
func (b *Budgets) NewSweep() *BudgetSweep {
	s := &BudgetSweep{env: b, Stages: b.Costs.Ops.Stages("budgets")}
	s.Next = s.begin
	return s
}

func (s *BudgetSweep) begin(ctx context.Context, now time.Time) (op.Progress, error) {
	uses, _, err := s.env.Uses(ctx, now)
	if err != nil {
		return op.Again, err
	}
	for _, u := range uses {
		if u.State() != budget.Within {
			s.news = append(s.news, u)
		}
	}
	return s.Then(s.report)
}

// budgetKind is the kind of the ids of reports. They are kept for longer than a month.
const (
	budgetKind  = "budget"
	keepBudgets = 40 * 24 * time.Hour
)

// report reports a budget in the log and the history, unless a replica has done so in the month.
func (s *BudgetSweep) report(ctx context.Context, now time.Time) (op.Progress, error) {
	if len(s.news) == 0 {
		return op.Done, nil
	}
	u := s.news[0]
	why := u.Reason()
	id := fmt.Sprintf("%s/%s/%s/%g", u.Month, why.Code, u.Name(), u.Dollars)
	err := s.env.Store.SeeOnce(ctx, budgetKind, id, now.Add(keepBudgets))
	switch {
	case errors.Is(err, lifecycle.ErrExists):
	case err != nil:
		return op.Again, fmt.Errorf("report the budget of %s: %w", u.Name(), err)
	default:
		s.env.Log.Warn("much of a budget is used", logkey.Budget, u.Name(), logkey.Code, why.Code, logkey.Reason, why.Text)
		s.Events.RecordEffect(lifecycle.Event{At: now, Repository: u.Repository, Action: lifecycle.ActionWarn, Code: why.Code, Reason: why.Text})
	}
	s.news = s.news[1:]
	return op.Again, nil
}
