package firstaccount

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	remuda "github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/retry"
)

var tokenCheck = check{
	name: "token",
	does: "repeats launches with the same client token",
	assumptions: []findings.Assumption{
		{
			Name: "token-repeat", Text: "A repeated CreateFleet with the same token launches nothing, and controld finds the machine of the first.",
			ReliedOn: "internal/compute/ec2/launch.go: launched; docs/design.md: a launch is written before it is made",
		},
		{
			Name: "token-other", Text: "With other parameters it is answered IdempotentParameterMismatch.",
			ReliedOn: "internal/compute/ec2/launch.go: launchedOtherwise",
		},
		{
			Name: "token-running", Text: "While the first call runs a second one launches nothing, and is answered like it or may be tried again.",
			ReliedOn: "internal/compute/ec2/launch.go: launchTimeout; internal/aws/errors.go: the class of the answer",
		},
	},
	run: checkToken,
}

func checkToken(ctx context.Context, s *session) error {
	l, err := s.theMachine(ctx)
	if err != nil {
		return err
	}
	if err := s.repeat(ctx, l); err != nil {
		return err
	}
	if err := s.repeatOtherwise(ctx, l); err != nil {
		return err
	}
	return s.repeatAtOnce(ctx, l)
}

// repeat makes the same launch as another replica of controld would.
func (s *session) repeat(ctx context.Context, l *launch) error {
	other, err := s.newFleet(s.fleet.cfg)
	if err != nil {
		return err
	}
	machines, err := other.Launch(ctx, l.order)
	call := other.recorder.last()
	s.ids = append(s.ids, newIDs(s.ids, call.ids())...)
	if ctx.Err() != nil {
		return err
	}
	count, countErr := s.machinesOf(ctx, l.order, append(call.ids(), l.InstanceID))
	if countErr != nil {
		return countErr
	}
	same := len(machines) == 1 && machines[0].InstanceID == l.InstanceID
	s.Decide("token-repeat", same && count == 1, "the answer has %d machines%s; controld has the same one: %t; %d were launched", len(call.ids()), said(call), same, count)
	return nil
}

// repeatOtherwise asks for two machines by the token of one.
func (s *session) repeatOtherwise(ctx context.Context, l *launch) error {
	in := *l.call.in
	capacity := *in.TargetCapacitySpecification
	capacity.TotalTargetCapacity = sdk.Int32(2)
	in.TargetCapacitySpecification = &capacity
	out, err := s.fleet.raw.CreateFleet(ctx, &in)
	call := fleetCall{out: out, err: err}
	s.ids = append(s.ids, newIDs(s.ids, call.ids())...)
	if ctx.Err() != nil {
		return errInterrupted
	}
	s.Decide("token-other", aws.Code(err) == "IdempotentParameterMismatch", "it was answered %s%s", answerOf(err), said(fleetCall{out: out}))
	return nil
}

// head is by how much the first of two calls is ahead: EC2 takes a second or more for a launch.
const head = 200 * time.Millisecond

// repeatAtOnce makes a launch by two replicas at nearly the same time.
func (s *session) repeatAtOnce(ctx context.Context, l *launch) error {
	version, err := s.fleet.Template(ctx, poolFleet)
	if err != nil {
		return err
	}
	order := s.order(poolFleet, version)
	var replicas [2]*fleet
	var machines [2][]lifecycle.Machine
	var errs [2]error
	for i := range replicas {
		if replicas[i], err = s.newFleet(s.fleet.cfg); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	for i, f := range replicas {
		wg.Go(func() {
			if i == 1 && retry.Sleep(ctx, head) != nil {
				return
			}
			machines[i], errs[i] = f.Launch(ctx, order)
		})
	}
	wg.Wait()
	for _, f := range replicas {
		s.ids = append(s.ids, newIDs(s.ids, f.recorder.last().ids())...)
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	first, second := replicas[0].recorder.last(), replicas[1].recorder.last()
	count, err := s.machinesOf(ctx, order, slices.Concat(first.ids(), second.ids()))
	if err != nil {
		return err
	}
	if second.begun.After(first.ended) {
		s.Leave("token-running", "the first call had been answered after %s, before the second came", findings.Seconds(first.ended.Sub(first.begun)))
		return s.fleet.Terminate(ctx, idsOf(machines[0]))
	}
	held := count == 1
	for i, err := range errs {
		held = held && (err == nil && len(machines[i]) == 1 || errors.Is(err, lifecycle.ErrUnavailable))
	}
	s.Decide("token-running", held, "the first has %d machines%s, the second, %s later, %d%s; %d were launched; of the second, %s", len(machines[0]), said(first),
		findings.Seconds(second.begun.Sub(first.begun)), len(machines[1]), said(second), count, replicas[1].tries.of("CreateFleet"))
	return s.fleet.Terminate(ctx, idsOf(slices.Concat(machines[0], machines[1])))
}

// machinesOf counts what was launched of an order: the machines in answers, which EC2 may not show yet, and those that it shows.
func (s *session) machinesOf(ctx context.Context, o lifecycle.LaunchOrder, answered []string) (int, error) {
	var list []types.Instance
	_, err := s.must(ctx, settling, "EC2 to show the machines of the order", func() (_ bool, err error) {
		list, err = s.instances(ctx, tagged(s.id), types.Filter{Name: str("tag:" + remuda.TagRequestID), Values: []string{o.RequestID}},
			types.Filter{Name: str("instance-state-name"), Values: []string{"pending", "running"}})
		return len(list) > 0, err
	})
	slices.Sort(answered)
	all := slices.Compact(answered)
	for _, i := range list {
		all = append(all, newIDs(all, []string{sdk.ToString(i.InstanceId)})...)
	}
	s.ids = append(s.ids, newIDs(s.ids, all)...)
	return len(all), err
}

// newIDs are those that are not known.
func newIDs(known, ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(known, id) })
}

func idsOf(machines []lifecycle.Machine) []string {
	var ids []string
	for _, m := range machines {
		if !slices.Contains(ids, m.InstanceID) {
			ids = append(ids, m.InstanceID)
		}
	}
	return ids
}

// said is what EC2 said in a call, if it said something.
func said(c fleetCall) string {
	if codes := c.codes(); len(codes) > 0 {
		return " (" + listed(codes) + ")"
	}
	return ""
}
