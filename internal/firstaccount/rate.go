package firstaccount

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/retry"
)

// The rate of one controld: that of internal/compute/ec2.
const (
	burst     = 3
	perSecond = 2
	ongoing   = 10 // calls after the burst
)

var rateCheck = check{
	name: "rate",
	does: fmt.Sprintf("calls CreateFleet as fast as controld may, %d times, without a right that each launch needs", burst+ongoing+2*burst),
	assumptions: []findings.Assumption{
		{
			Name: "rate-one", Text: "CreateFleet takes three calls at once and then two a second: the rate of one controld.",
			ReliedOn: "internal/compute/ec2/ec2.go: Rates.Launches",
		},
		{
			Name: "rate-two", Text: "After a pause it takes six at once: the bursts of two replicas.",
			ReliedOn: "internal/compute/ec2/ec2.go: Rates.Launches, half of EC2's bucket",
		},
	},
	run: checkRate,
}

func checkRate(ctx context.Context, s *session) error {
	if err := s.templates(ctx); err != nil {
		return err
	}
	call, err := s.launchWithoutRole(ctx)
	if err != nil {
		return err
	}
	if len(call.ids()) > 0 {
		return fmt.Errorf("a launch that should be refused was made: %s", listed(call.ids()))
	}
	if err := s.refill(ctx); err != nil { // what the other checks took
		return err
	}
	seen := &rateSeen{}
	s.atOnce(ctx, call, burst, seen)
	for range ongoing {
		if err := retry.Sleep(ctx, s.Times.Turn); err != nil {
			return err
		}
		s.atOnce(ctx, call, 1, seen)
	}
	s.Decide("rate-one", seen.throttled == 0, "%s", seen)
	if err := s.refill(ctx); err != nil {
		return err
	}
	seen = &rateSeen{}
	s.atOnce(ctx, call, 2*burst, seen)
	s.Decide("rate-two", seen.throttled == 0, "%s", seen)
	return ctx.Err()
}

// refill waits until EC2's bucket should be full.
func (s *session) refill(ctx context.Context) error { return retry.Sleep(ctx, 10*s.Times.Turn) }

// rateSeen are the answers to some calls.
type rateSeen struct {
	mu               sync.Mutex
	calls, throttled int
	longest          time.Duration
	codes            []string
}

func (r *rateSeen) String() string {
	return fmt.Sprintf("%d of %d calls were throttled; the longest took %s; answers: %s", r.throttled, r.calls, findings.Seconds(r.longest), listed(r.codes))
}

// atOnce makes the refused launch n times, each by a token of its own, without repetitions.
func (s *session) atOnce(ctx context.Context, call fleetCall, n int, seen *rateSeen) {
	var wg sync.WaitGroup
	for range n {
		s.orders++
		in := *call.in
		in.ClientToken = str(fmt.Sprintf("%s-order-%d", s.id, s.orders))
		wg.Go(func() {
			c := fleetCall{begun: time.Now()}
			c.out, c.err = s.refused.raw.CreateFleet(ctx, &in)
			c.ended = time.Now()
			seen.mu.Lock()
			defer seen.mu.Unlock()
			s.ids = append(s.ids, newIDs(s.ids, c.ids())...)
			seen.add(c)
		})
	}
	wg.Wait()
}

func (r *rateSeen) add(c fleetCall) {
	r.calls++
	r.longest = max(r.longest, c.ended.Sub(c.begun))
	for _, code := range c.codes() {
		if code == "RequestLimitExceeded" || code == "Throttling" {
			r.throttled++
		}
		r.codes = append(r.codes, newIDs(r.codes, []string{code})...)
	}
}
