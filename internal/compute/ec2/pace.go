package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"golang.org/x/time/rate"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/retry"
)

// Rate is a bucket of tokens: how many there may be, and how many come back each second.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Rates keep the calls of a process below those at which EC2 throttles, which holds for the whole account and
// region: a throttled launch costs more time than a paced one, and throttles others too. What other programs
// of the account use up is left to the retries.
//
// Source of the defaults: "Request throttling for the Amazon EC2 API". Refill as
// EC2's, and half of its buckets, so that a second replica has the other half.
type Rates struct {
	Launches     Rate // CreateFleet requests; as RunInstances: EC2 has 5, and 2 a second
	Launched     Rate // machines of launches; EC2 has 1,000, and 2 a second
	Terminations Rate // TerminateInstances requests; mutating: EC2 has 50, and 5 a second
	Terminated   Rate // machines of terminations; EC2 has 1,000, and 20 a second
	Reads        Rate // Describe requests, each action for itself; EC2 has 100, and 20 a second
	Changes      Rate // other changes, of launch templates; mutating: EC2 has 50, and 5 a second
}

var defaultRates = Rates{
	Launches: Rate{2, 3}, Launched: Rate{2, 500},
	Terminations: Rate{5, 25}, Terminated: Rate{20, 500},
	Reads: Rate{20, 50}, Changes: Rate{5, 25},
}

type pacing struct {
	launches, launched, terminations, terminated, reads, changes *rate.Limiter
}

func newPacing(r Rates) pacing {
	limiter := func(r, def Rate) *rate.Limiter {
		if r.PerSecond <= 0 || r.Burst <= 0 {
			r = def
		}
		return rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)
	}
	d := defaultRates
	return pacing{
		launches: limiter(r.Launches, d.Launches), launched: limiter(r.Launched, d.Launched),
		terminations: limiter(r.Terminations, d.Terminations), terminated: limiter(r.Terminated, d.Terminated),
		reads: limiter(r.Reads, d.Reads), changes: limiter(r.Changes, d.Changes),
	}
}

// await takes n tokens as they become available. If the caller's deadline comes first, it
// takes none and returns at once an error that says when to try again.
func await(ctx context.Context, l *rate.Limiter, n int, what string) error {
	var taken []*rate.Reservation
	var delay time.Duration
	for left := n; left > 0; left -= l.Burst() {
		r := l.ReserveN(time.Now(), min(left, l.Burst()))
		taken, delay = append(taken, r), max(delay, r.Delay())
	}
	giveBack := func() {
		for _, r := range slices.Backward(taken) {
			r.Cancel()
		}
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < delay {
		giveBack()
		return &lifecycle.UnavailableError{What: what, RetryAfter: delay, Err: errPaced}
	}
	if delay <= 0 {
		return nil
	}
	if retry.Sleep(ctx, delay) != nil {
		giveBack()
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	return nil
}

// paced makes a call to EC2 when its turn has come. It describes an error by what, and keeps its class.
func paced[In, Out any](ctx context.Context, l *rate.Limiter, what string, call func(context.Context, *In, ...func(*service.Options)) (*Out, error), in *In) (*Out, error) {
	if err := await(ctx, l, 1, what); err != nil {
		return nil, err
	}
	out, err := call(ctx, in)
	if err != nil {
		return nil, aws.Wrap(what, err)
	}
	return out, nil
}

var errPaced = errors.New("calls to EC2 are paced to stay below its limits, and the caller's deadline comes before its turn")
