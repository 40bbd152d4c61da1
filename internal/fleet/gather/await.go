package gather

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet/op"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/batch"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// Share is what a member has of its batch.
type Share struct {
	// Done: the call was made, or will never be made for this member. Otherwise the member asks again after Wait.
	Done bool
	Wait time.Duration

	Machines []lifecycle.Machine
	// Answered: see quota.LaunchResult.
	Answered bool
	// Short is why there are fewer machines than the member ordered; "": there are not, or no call was made for it.
	Short string
	// Refused is what the call was refused with; nil: it was not.
	Refused error
}

// tokenOf is the idempotency token of a batch's call.
func tokenOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

// Await brings the batch of q's launch one step nearer to its call, and returns what the launch has of it. A late
// launch orders nothing more, and has only what was made for it before.
func (b *Batches) Await(ctx context.Context, q lifecycle.Request, late bool, now time.Time) (Share, error) {
	m := memberOf(q)
	g, share := b.turn(q, m, late, now)
	switch {
	case g == nil:
		return b.fromRow(ctx, q, m, now)
	case share != nil:
		return *share, nil
	}
	wait, err := b.step(ctx, g, now)
	if err != nil {
		return Share{}, fmt.Errorf("launch batch %s: %w", g.id, err)
	}
	return Share{Wait: wait}, nil
}

// turn returns the batch of a member if it is the member's turn to work on it, and otherwise what the member has of it.
// Without either this process does not know the batch.
func (b *Batches) turn(q lifecycle.Request, m batch.Member, late bool, now time.Time) (*gathering, *Share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.known[q.Launch.Batch]
	if g == nil {
		return nil, nil
	}
	in := slices.IndexFunc(g.waiting, func(w waiting) bool { return w.Member == m })
	switch {
	case g.made != nil:
		share := g.made.of(m)
		return g, &share
	case g.led() && in < 0:
		return g, &Share{Done: true} // it came too late, and the call is not made for it
	case g.led() && g.leader != m && now.Sub(g.ledAt) < leaderPatience:
		return g, &Share{Wait: look}
	case g.led():
		if g.leader != m {
			g.leader, g.ledAt = m, now
		}
		return g, nil
	case late:
		g.leave(m)
		return g, &Share{Done: true}
	case slices.Contains(g.left, m):
		return g, &Share{Done: true}
	case in < 0:
		g.waiting = append(g.waiting, waiting{m, q.CreatedAt, q.Deadline})
	}
	if !b.turns.AllowN(now, 1) {
		return g, &Share{Wait: b.untilTurn(now)}
	}
	b.lead(g, m, now)
	return g, nil
}

// of is what a member has of the machines.
func (d *made) of(m batch.Member) Share {
	from, to, named := batch.Share(d.members, m, len(d.machines))
	if !named {
		return Share{Done: true}
	}
	s := Share{Done: true, Machines: d.machines[from:to], Answered: d.answered}
	if to-from < m.Count {
		s.Short, s.Refused = d.short, d.refused
	}
	return s
}

// step does the next effect of a batch that this process leads: its row, its call, the machines into its row.
func (b *Batches) step(ctx context.Context, g *gathering, now time.Time) (wait time.Duration, err error) {
	b.mu.Lock()
	row, written, tried := g.row, g.written, g.tried
	g.tried = g.tried || written
	b.mu.Unlock()
	if !written {
		err := b.Store.CreateRequest(ctx, row)
		if errors.Is(err, lifecycle.ErrExists) {
			row, err = b.stored(ctx, row)
		}
		if err == nil {
			b.publish(g, row, nil)
		}
		return 0, err
	}
	stored, result, wait, err := b.launch(ctx, row, !tried, now)
	if err == nil {
		b.publish(g, stored, result)
	}
	return wait, err
}

// stored reads the row of a batch. One that was given up has no members, and no call is made.
func (b *Batches) stored(ctx context.Context, q lifecycle.Request) (lifecycle.Request, error) {
	row, err := b.Store.Request(ctx, q.Repository, q.RunID, q.RequestID)
	if err != nil {
		return q, fmt.Errorf("read batch %s: %w", q.RequestID, err)
	}
	return row, nil
}

// publish notes how far a batch is, for its members. It takes no others: its row is written, which another replica that works on the same request
// may have done.
func (b *Batches) publish(g *gathering, row lifecycle.Request, result *made) {
	if result == nil && len(row.Members) == 0 {
		result = &made{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(g)
	g.row, g.written = row, true
	if g.made == nil {
		g.made = result
	}
}

// launch makes the call of a batch, and writes into its row which machines came. fresh: nothing can have made it before. If another
// replica wrote the row first, that row says which machines came. Without a result launch is to be repeated after wait.
func (b *Batches) launch(ctx context.Context, q lifecycle.Request, fresh bool, now time.Time) (_ lifecycle.Request, result *made, wait time.Duration, err error) {
	if q.Settled() {
		machines, err := b.describe(ctx, q, now)
		if err != nil || machines == nil {
			return q, nil, settlingLook, err
		}
		return q, &made{members: q.Members, machines: machines, short: q.Shortage, refused: refusalOf(q)}, 0, nil
	}
	came, err := b.call(ctx, q, fresh, now)
	if err != nil || came == nil {
		return q, nil, settlingLook, err
	}
	stored, err := b.Store.UpdateRequest(ctx, settled(q, came, now))
	switch {
	case errors.Is(err, lifecycle.ErrConflict):
		row, err := b.stored(ctx, q)
		return row, nil, 0, err
	case err != nil:
		return q, nil, 0, fmt.Errorf("write batch %s: %w", q.RequestID, err)
	}
	b.Log.Debug("batch launched", logkey.Request, q.RequestID, logkey.Count, len(q.Members), logkey.Hosts, len(came.machines))
	return stored, came, 0, nil
}

// refusal is the text of a lifecycle.ErrRefused that another process got.
type refusal string

func (r refusal) Error() string { return string(r) }

func (refusal) Is(target error) bool { return target == lifecycle.ErrRefused }

// refusalOf is what the call of a batch was refused with, by the batch's row; nil: it was not.
func refusalOf(q lifecycle.Request) error {
	if !q.Refused {
		return nil
	}
	return refusal(q.Shortage)
}

// settled is the row of a batch with the machines that came.
func settled(q lifecycle.Request, came *made, now time.Time) lifecycle.Request {
	q.Outcome, q.Shortage, q.Refused = lifecycle.OutcomeReady, came.short, came.refused != nil
	if len(came.machines) < q.Launch.Count {
		q.Outcome = lifecycle.OutcomeShort
	}
	q.Reason = fmt.Sprintf("%d of %s launched", len(came.machines), plural.Of(q.Launch.Count, "machine was", "machines were"))
	q.Taken = nil
	for _, m := range came.machines {
		q.Taken = append(q.Taken, lifecycle.Taken{HostKey: m.HostKey, InstanceID: m.InstanceID})
	}
	q.NotBefore, q.DueAt = now.Add(settling), now.Add(settling)
	return q
}

// call makes the call of a batch, unless it is late. One that may have been made before is looked for first. What the
// cloud refuses comes short. The result is nil while a listing may lack machines of a call that is not repeated.
func (b *Batches) call(ctx context.Context, q lifecycle.Request, fresh bool, now time.Time) (*made, error) {
	came := &made{members: q.Members}
	if !fresh {
		found, err := b.Compute.Launched(ctx, *q.Launch)
		if err != nil {
			return nil, err
		}
		came.machines = found
	}
	switch late := !now.Before(q.Deadline); {
	case len(came.machines) >= q.Launch.Count:
		return came, nil
	case late && !fresh && now.Before(q.Deadline.Add(settling)):
		return nil, nil
	case late:
		came.short = "its launch came too late"
		return came, nil
	}
	machines, err := b.Compute.Launch(ctx, *q.Launch)
	var lack *lifecycle.ShortageError
	switch {
	case errors.Is(err, lifecycle.ErrExists):
		return b.madeBefore(ctx, q, err)
	case errors.As(err, &lack):
		came.short = lack.Reason
	case errors.Is(err, lifecycle.ErrRefused) && !op.Transient(ctx, err):
		came.short, came.refused = err.Error(), err
		return came, nil
	case err != nil:
		return nil, err
	}
	came.machines, came.answered = machines, true
	return came, nil
}

// madeBefore is what came of a batch whose id an earlier one had. The rows of that one and of a member were lost. What it
// made is taken, and members that get none launch again, under another id.
func (b *Batches) madeBefore(ctx context.Context, q lifecycle.Request, why error) (*made, error) {
	b.Log.Warn("batch was launched before with other terms; taking its machines", logkey.Request, q.RequestID, logkey.Error, why)
	machines, err := b.Compute.Launched(ctx, *q.Launch)
	if err != nil {
		return nil, err
	}
	return &made{members: q.Members, machines: machines[:min(len(machines), q.Launch.Count)], short: "its launch was made before with other terms"}, nil
}

// describe reads the machines of a batch whose row names them; nil if the cloud may not show them all yet.
func (b *Batches) describe(ctx context.Context, q lifecycle.Request, now time.Time) ([]lifecycle.Machine, error) {
	ids := make([]string, 0, len(q.Taken))
	for _, t := range q.Taken {
		ids = append(ids, t.InstanceID)
	}
	if len(ids) == 0 {
		return []lifecycle.Machine{}, nil
	}
	machines, err := b.Compute.Describe(ctx, ids)
	if err != nil {
		return nil, err
	}
	gone := slices.ContainsFunc(machines, func(m lifecycle.Machine) bool { return m.State == lifecycle.MachineGone })
	if gone && now.Before(q.NotBefore) {
		return nil, nil
	}
	return machines, nil
}

// fromRow is what a launch has of a batch that this process did not begin, or has forgotten. A batch without a row is
// given up, so that its call is not made later.
func (b *Batches) fromRow(ctx context.Context, q lifecycle.Request, m batch.Member, now time.Time) (Share, error) {
	given := emptyRow(q.Launch.Pool, q.Launch.Batch, now)
	row, err := b.stored(ctx, given)
	if errors.Is(err, lifecycle.ErrNotFound) {
		given.Outcome, given.Reason, given.ExpiresAt = lifecycle.OutcomeShort, "given up before its call", now.Add(keepRows)
		err := b.Store.CreateRequest(ctx, given)
		if errors.Is(err, lifecycle.ErrExists) {
			return Share{}, nil
		}
		return Share{Done: err == nil}, err
	}
	if err != nil {
		return Share{}, err
	}
	if !slices.Contains(row.Members, m) {
		return Share{Done: true}, nil
	}
	_, result, wait, err := b.launch(ctx, row, false, now)
	if err != nil || result == nil {
		return Share{Wait: wait}, err
	}
	return result.of(m), nil
}
