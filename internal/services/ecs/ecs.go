// Package ecs has services of runners on Amazon ECS, in any regions and
// clusters: what they run, and how many runners they are to have.
//
// There is no pacing here as for EC2: a request describes ten services, so even a hundred in ten clusters
// take ten a minute, and a service is changed a few times an hour. ECS gives back 20 reads and 5 changes a
// second ("Request throttling for the Amazon ECS API").
package ecs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
)

const (
	// describeBatch is how many services one DescribeServices may name.
	describeBatch = 10
	// callTimeout bounds a call with all its tries. Shorter than a try and ECS being slow is taken for away;
	// longer, and one region that does not answer holds up the services of the others.
	callTimeout = 20 * time.Second
	// atOnce is how many clusters are asked at the same time.
	atOnce = 8
)

// Place is where a service is. The names are not ARNs.
type Place struct{ Region, Cluster, Service string }

func (p Place) String() string {
	return fmt.Sprintf("service %s in cluster %s of %s", p.Service, p.Cluster, p.Region)
}

// Scaler is the services of a configuration. It is safe for concurrent use.
type Scaler struct {
	places  map[string]Place
	clients map[string]*api.Client
}

// New returns the services with these names, and makes no call. There must be a
// client for the region of each.
func New(places map[string]Place, clients map[string]*api.Client) (*Scaler, error) {
	for name, p := range places {
		if clients[p.Region] == nil {
			return nil, fmt.Errorf("service %s: there is no client for region %q", name, p.Region)
		}
	}
	return &Scaler{places: places, clients: clients}, nil
}

// Describe returns what ECS says of each service, with one request for each ten
// services of a cluster. A cluster that fails does not affect the others.
func (s *Scaler) Describe(ctx context.Context, services []string) map[string]model.Observation {
	looks := map[string]model.Observation{}
	var mu sync.Mutex
	note := func(name string, look model.Observation) {
		mu.Lock()
		defer mu.Unlock()
		looks[name] = look
	}
	clusters := map[Place][]string{} // without the service
	for _, name := range slices.Compact(slices.Sorted(slices.Values(services))) {
		p, ok := s.places[name]
		if !ok {
			note(name, model.Observation{Err: fmt.Errorf("describe service %s: it is not on ECS: %w", name, lifecycle.ErrNotFound)})
			continue
		}
		p.Service = ""
		clusters[p] = append(clusters[p], name)
	}
	var asking sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for cluster, names := range clusters {
		for batch := range slices.Chunk(names, describeBatch) {
			asking.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				s.describe(ctx, cluster, batch, note)
			})
		}
	}
	asking.Wait()
	return looks
}

// describe notes what one request tells.
func (s *Scaler) describe(ctx context.Context, cluster Place, names []string, note func(string, model.Observation)) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var asked []string
	for _, name := range names {
		asked = append(asked, s.places[name].Service)
	}
	out, err := s.clients[cluster.Region].DescribeServices(ctx, &api.DescribeServicesInput{Cluster: &cluster.Cluster, Services: asked})
	for _, name := range names {
		if err != nil {
			note(name, model.Observation{Err: aws.Wrap("describe "+s.places[name].String(), err)})
			continue
		}
		note(name, lookAt(s.places[name], out))
	}
}

// lookAt returns what an answer says of one service.
func lookAt(p Place, out *api.DescribeServicesOutput) model.Observation {
	i := slices.IndexFunc(out.Services, func(v types.Service) bool { return sdk.ToString(v.ServiceName) == p.Service })
	if i < 0 {
		return model.Observation{Err: fmt.Errorf("describe %s: %w: create it, or correct its names", p, lifecycle.ErrNotFound)}
	}
	v := out.Services[i]
	// The statuses of ECS: ACTIVE, DRAINING while it is deleted, and INACTIVE.
	if status := sdk.ToString(v.Status); status != "ACTIVE" {
		return model.Observation{Err: fmt.Errorf("describe %s: it is %s: %w: create it again", p, status, lifecycle.ErrNotFound)}
	}
	return model.Observation{Tasks: model.Tasks{
		Desired: int(v.DesiredCount), Running: int(v.RunningCount), Pending: int(v.PendingCount),
	}}
}

// SetDesired tells ECS how many runners a service is to have. To say it again changes nothing.
func (s *Scaler) SetDesired(ctx context.Context, service string, desired int) error {
	p, ok := s.places[service]
	if !ok {
		return fmt.Errorf("scale service %s: it is not on ECS: %w", service, lifecycle.ErrNotFound)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := s.clients[p.Region].UpdateService(ctx, &api.UpdateServiceInput{
		Cluster: &p.Cluster, Service: &p.Service, DesiredCount: sdk.Int32(int32(desired)),
	})
	if err != nil {
		return aws.Wrap(fmt.Sprintf("scale %s to %d", p, desired), err)
	}
	return nil
}

// Actions are what the services call.
func Actions() []aws.Permission {
	return []aws.Permission{
		{Action: "ecs:DescribeServices", Role: aws.RoleControld, On: aws.OnServices, Why: "looks how many runners the services have"},
		{Action: "ecs:UpdateService", Role: aws.RoleControld, On: aws.OnServices, Why: "says how many runners a service is to have"},
	}
}
