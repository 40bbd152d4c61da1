package hosts

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// standbyPrefix begins the label of a host that listens ahead of need, for people who look at GitHub's list of runners.
const standbyPrefix = "remuda-standby-"

// newStandby is the registration ahead of need of a host that is about to be pooled, with the token for it. Both
// are nil if GitHub gives none: then the host waits without a registration.
func (hs *Hosts) newStandby(ctx context.Context, r lifecycle.Record) (*lifecycle.Standby, *lifecycle.Registration) {
	token, err := hs.GitHub.RegistrationToken(ctx, r.Repository)
	if err != nil {
		hs.Log.Warn("no registration token, so a host waits without a registration", logkey.Instance, r.InstanceID, logkey.Repository, r.Repository, logkey.Error, err)
		return nil, nil
	}
	text := rand.Text
	if hs.RandomText != nil {
		text = hs.RandomText
	}
	return &lifecycle.Standby{Assignment: r.Assignment, Label: lifecycle.Secret(standbyPrefix + text()), URL: token.URL}, &token
}

// findStandby completes the decision that a host listens ahead of need: it asks GitHub for the id of the runner. While
// GitHub does not list the runner, the host is kept as it is, but not for longer than ClaimTimeout, since each look costs a call.
func (hs *Hosts) findStandby(ctx context.Context, r lifecycle.Record, d lifecycle.Decision, now time.Time) (lifecycle.Decision, error) {
	runner, err := hs.GitHub.FindRunner(ctx, r.Repository, r.RunnerName)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound) && !now.Before(r.PooledAt.Add(hs.Policy(r.Pool).ClaimTimeout)):
		return lifecycle.Decision{
			Action: lifecycle.ActionLeaveStandby, StandbyFailed: true,
			Code: lifecycle.ReasonStandbyFailed, Reason: "it says that it listens, and GitHub does not list its runner",
		}, nil
	case errors.Is(err, lifecycle.ErrNotFound):
		return lifecycle.Decision{
			Action: lifecycle.ActionKeep, CheckAt: now.Add(hs.Policy(r.Pool).ReleasePoll),
			Code: lifecycle.ReasonWaitingForRun, Reason: "its runner listens, and GitHub does not list it yet",
		}, nil
	case err != nil:
		return d, fmt.Errorf("find runner %s: %w", r.RunnerName, err)
	}
	d.RunnerID = runner.ID
	return d, nil
}

const (
	// labelPatience is how long the call that sets the labels of a run is repeated while GitHub does not answer it, before the
	// host is registered instead. The caller waits for as long.
	labelPatience = 15 * time.Second
	// registrationTime is about what config.sh and the start of the listener take. If a call may be made no sooner, because of
	// GitHub's limits, a host that registers at once is ready earlier.
	registrationTime = 5 * time.Second
)

// SetLabels gives the runner of a claimed host the labels of its run, and adds to the facts what came of it. GitHub then gives the
// host the jobs of its run. A call whose answer was lost is repeated, which changes nothing.
func (hs *Hosts) SetLabels(ctx context.Context, facts lifecycle.Facts, now time.Time) (lifecycle.Facts, error) {
	r := facts.Record
	if movedAway(r) {
		hs.Log.Warn("its runner belongs to another place than the hosts of this repository do now, so the host registers for its run", logkey.Instance, r.InstanceID, logkey.Runner, r.RunnerName)
		facts.Runner = &lifecycle.Runner{Name: r.RunnerName, Gone: true}
		return facts, nil
	}
	id, err := hs.standbyID(ctx, r)
	if err == nil {
		err = hs.GitHub.SetLabels(ctx, r.Repository, id, slices.Concat([]string{r.RunID}, r.Labels))
	}
	switch {
	case err == nil:
		facts.LabelsSet, facts.Runner = true, &lifecycle.Runner{ID: id, Name: r.RunnerName}
		return facts, nil
	case errors.Is(err, lifecycle.ErrNotFound):
		facts.Runner = &lifecycle.Runner{Name: r.RunnerName, Gone: true}
		return facts, nil
	case answersSoon(err) && now.Before(askedSince(facts).Add(labelPatience)):
		return facts, fmt.Errorf("set the labels of runner %s: %w", r.RunnerName, err)
	}
	hs.Log.Warn("labels not set, so the host registers for its run", logkey.Instance, r.InstanceID, logkey.Runner, r.RunnerName, logkey.Error, err)
	facts.Runner = &lifecycle.Runner{Name: r.RunnerName, Gone: true}
	return facts, nil
}

// answersSoon reports whether a call that GitHub did not answer is worth a repetition while a host waits for it.
func answersSoon(err error) bool {
	var u *lifecycle.UnavailableError
	return errors.As(err, &u) && u.RetryAfter < registrationTime
}

// movedAway reports whether the runner that listens belongs to another place than the one that the host was claimed with: the scope of
// registrations has changed since. There the id may be that of another runner.
func movedAway(r lifecycle.Record) bool {
	return r.Registration != nil && r.Standby.URL != "" && !strings.EqualFold(r.Registration.URL, r.Standby.URL)
}

// standbyID is the id of the runner that listens ahead of need. GitHub is asked for it if the host was claimed before the
// id was known. Listings lag, so a runner that is not listed is asked for again.
func (hs *Hosts) standbyID(ctx context.Context, r lifecycle.Record) (int64, error) {
	if r.Standby.RunnerID != 0 {
		return r.Standby.RunnerID, nil
	}
	runner, err := hs.GitHub.FindRunner(ctx, r.Repository, r.RunnerName)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return 0, &lifecycle.UnavailableError{What: "runner " + r.RunnerName, RetryAfter: time.Second, Err: errors.New("GitHub does not list it yet")}
	}
	return runner.ID, err
}

// askedSince is since when the runner of a claimed host can have been asked for: it may have been claimed before it listened.
func askedSince(facts lifecycle.Facts) time.Time {
	r := facts.Record
	if p := facts.Report; p != nil && p.RegisteredAt.After(r.UpdatedAt) && p.RegisteredAt.Before(r.Threshold) {
		return p.RegisteredAt
	}
	return r.UpdatedAt
}

// SetAllLabels is SetLabels for the hosts of a request at once. It returns the facts in the same order, those of the hosts that
// could not be asked for unchanged, and the first error.
func (hs *Hosts) SetAllLabels(ctx context.Context, all []lifecycle.Facts, now time.Time) ([]lifecycle.Facts, error) {
	all, errs := slices.Clone(all), make([]error, len(all))
	hs.eachAtOnce(len(all), func(i int) { all[i], errs[i] = hs.SetLabels(ctx, all[i], now) })
	return all, cmp.Or(errs...)
}

// withdrawPatience bounds the deletions of registrations that serve no run. Hosts of the same request wait for them, and GitHub's limits
// let a few through at once.
const withdrawPatience = 2 * time.Second

// WithdrawStandby deletes the registrations of hosts that register for their run instead, with the records before that decision. It
// is called after their records say so: another operation may just have made a host ready by that registration, and then
// this one has lost the race. A job that GitHub has given the runner is one of the run, whose labels were set after all: it runs to its
// end before the host registers. It returns the records whose registration GitHub did not delete soon.
func (hs *Hosts) WithdrawStandby(ctx context.Context, before ...lifecycle.Record) (left []lifecycle.Record) {
	ctx, cancel := context.WithTimeout(ctx, withdrawPatience)
	defer cancel()
	errs := make([]error, len(before))
	hs.eachAtOnce(len(before), func(i int) { _, errs[i] = hs.DeleteRunner(ctx, before[i]) })
	for i, err := range errs {
		if err != nil {
			left = append(left, before[i])
		}
	}
	if len(left) > 0 {
		hs.Log.Warn("registrations not deleted", logkey.Count, len(left), logkey.Runner, left[0].RunnerName, logkey.Error, cmp.Or(errs...))
	}
	return left
}

// Discarded is the record of a host that has just become ready, with the name of the runner that it gave up before. It is false for
// a host that gave up none.
func Discarded(before lifecycle.Record) (lifecycle.Record, bool) {
	s := before.Standby
	if s == nil || !s.Discarded {
		return before, false
	}
	before.RunnerName = lifecycle.RunnerName(s.Assignment, before.InstanceID)
	return before, true
}
