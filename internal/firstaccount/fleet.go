package firstaccount

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The pools of the fleet, each with a launch template.
const (
	poolFleet = "fleet" // with the image of the fleet
	poolHost  = "host"  // with Amazon Linux
	poolKey   = "key"   // with a volume of the account's own key
	poolBoth  = "both"  // with images of both architectures
	poolPlain = "plain" // whose launch template names no security group; never launched
)

// fleet is EC2 as controld calls it, with some credentials.
type fleet struct {
	*ec2.Compute
	cfg sdk.Config
	// raw is the client without repetitions.
	raw      *service.Client
	recorder *recorder
	tries    *tries
}

// callLimit is for a call of CreateFleet, as controld has it.
const callLimit = time.Minute

// newFleet returns a fleet that remembers nothing, as another replica of controld would.
func (s *session) newFleet(cfg sdk.Config) (*fleet, error) {
	var subnets []string
	for _, p := range s.places {
		subnets = append(subnets, p.subnet)
	}
	pool := func(images ...image) ec2.Pool {
		byArch, gib := map[string]string{}, leastGiB
		for _, i := range images {
			byArch[i.arch], gib = i.id, max(gib, i.gib)
		}
		return ec2.Pool{Images: byArch, Subnets: subnets, SecurityGroups: s.Groups, RootVolumeGiB: gib, Burstable: true}
	}
	plain := pool(s.image)
	plain.SecurityGroups = nil
	pools := map[string]ec2.Pool{poolFleet: pool(s.image), poolPlain: plain}
	if s.hostImage.id != "" {
		pools[poolHost] = pool(s.hostImage)
	}
	if s.otherImage.id != "" {
		pools[poolBoth] = pool(s.image, s.otherImage)
	}
	if s.KMSKeyID != "" {
		p := pool(s.image)
		p.KMSKeyID = s.KMSKeyID
		pools[poolKey] = p
	}
	tries := &tries{codes: map[string]int{}}
	cfg.APIOptions = append(slices.Clone(cfg.APIOptions), tries.watch)
	f := &fleet{cfg: cfg, tries: tries, recorder: &recorder{API: service.NewFromConfig(cfg)}}
	f.raw = service.NewFromConfig(cfg, func(o *service.Options) {
		o.Retryer = sdk.NopRetryer{}
		if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = client.WithTimeout(callLimit)
		}
	})
	var err error
	f.Compute, err = ec2.New(f.recorder, ec2.Options{
		Prefix: s.id, Region: s.AWS.Region, RoleID: s.roleID, InstanceProfile: s.hostRole(), Pools: pools,
	})
	return f, err
}

// fleetCall is a call of CreateFleet, after all its tries.
type fleetCall struct {
	in           *service.CreateFleetInput
	out          *service.CreateFleetOutput
	err          error
	begun, ended time.Time
}

// codes are what EC2 said of the call, or of its offerings.
func (c fleetCall) codes() []string {
	var codes []string
	if code := aws.Code(c.err); code != "" {
		codes = append(codes, code)
	}
	if c.out != nil {
		for _, e := range c.out.Errors {
			codes = append(codes, sdk.ToString(e.ErrorCode))
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// messages are what EC2 said of the offerings, in words.
func (c fleetCall) messages() []string {
	var texts []string
	if api := smithy.APIError(nil); errors.As(c.err, &api) {
		texts = append(texts, api.ErrorCode()+": "+aws.Reason(api.ErrorMessage()))
	}
	if c.out != nil {
		for _, e := range c.out.Errors {
			texts = append(texts, aws.Reason(sdk.ToString(e.ErrorMessage)))
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// ids are the machines in the answer.
func (c fleetCall) ids() []string {
	var ids []string
	if c.out != nil {
		for _, set := range c.out.Instances {
			ids = append(ids, set.InstanceIds...)
		}
	}
	return ids
}

// recorder keeps the calls of CreateFleet.
type recorder struct {
	ec2.API

	mu    sync.Mutex
	calls []fleetCall
}

// CreateFleet makes the call and keeps it.
func (r *recorder) CreateFleet(ctx context.Context, in *service.CreateFleetInput, o ...func(*service.Options)) (*service.CreateFleetOutput, error) {
	call := fleetCall{in: in, begun: time.Now()}
	call.out, call.err = r.API.CreateFleet(ctx, in, o...)
	call.ended = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	return call.out, call.err
}

// made is how many calls there were.
func (r *recorder) made() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// last is the latest call; a zero one if there was none.
func (r *recorder) last() fleetCall { return r.lastAfter(0) }

// lastAfter is the latest call but the first n; a zero one if there was none: a launch may fail before its call.
func (r *recorder) lastAfter(n int) fleetCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) <= n {
		return fleetCall{}
	}
	return r.calls[len(r.calls)-1]
}

// launch is a machine with the order and the call that made it.
type launch struct {
	lifecycle.Machine
	order lifecycle.LaunchOrder
	call  fleetCall

	// How long after its answer EC2 showed the machine; 0: not within settling. The first look that did is kept.
	byID, byTags time.Duration
	first        *types.Instance
}

// launchFrom makes the launch template of a pool if it is not there, and launches a machine as controld does. Until the roles are known everywhere
// a refusal is tried again, by an order of its own.
func (s *session) launchFrom(ctx context.Context, pool string) (*launch, error) {
	if err := s.templates(ctx); err != nil {
		return nil, err
	}
	for {
		version, err := s.fleet.Template(ctx, pool)
		if err != nil {
			return nil, err
		}
		l := &launch{order: s.order(pool, version)}
		made := s.fleet.recorder.made()
		machines, err := s.fleet.Launch(ctx, l.order)
		l.call = s.fleet.recorder.lastAfter(made)
		s.ids = append(s.ids, l.call.ids()...)
		if len(machines) == 1 && err == nil {
			l.Machine = machines[0]
			s.Say("launched %s, a %s in %s, by %s", l.InstanceID, l.InstanceType, l.Zone, sdk.ToString(l.call.in.ClientToken))
			return l, nil
		}
		if s.settled() || ctx.Err() != nil {
			return l, err
		}
		s.Say("not launched, which may be since the roles are new: %v", err)
		if err := s.pause(ctx); err != nil {
			return l, err
		}
	}
}

// templates makes the launch templates, as Refresh does.
func (s *session) templates(ctx context.Context) error {
	if s.templated {
		return nil
	}
	_, err := s.must(ctx, s.Times.Settle, "the launch templates", func() (bool, error) {
		_, err := s.fleet.Ensure(ctx, false)
		if err != nil && !s.settled() {
			s.Say("not made, which may be since the roles are new: %v", err)
			return false, nil
		}
		return err == nil, err
	})
	s.templated = err == nil
	return err
}

// theMachine launches the machine that the checks look at, once, and waits until EC2 shows it.
func (s *session) theMachine(ctx context.Context) (*launch, error) {
	if s.machine != nil {
		return s.machine, nil
	}
	l, err := s.launchFrom(ctx, poolFleet)
	if err != nil {
		return l, err
	}
	s.machine = l
	return l, s.show(ctx, l)
}
