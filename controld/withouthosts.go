package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// newServiceBackends makes the backends of a fleet that only scales services. It needs the store alone. Refresh makes
// the same tables as for a fleet with hosts, which stay empty, and no queues and launch templates.
func newServiceBackends(ctx context.Context, c *config.Config, log hclog.Logger, readOnly bool) (*backends, error) {
	b := &backends{
		queue: noHosts{}, compute: noHosts{}, close: func() error { return nil },
		sells: func(fleet.Class, ...[]string) bool { return false },
	}
	if c.Backend() == config.BackendAWS {
		clock, calls := &aws.Clock{}, &aws.Calls{}
		cfg, err := loadAWS(ctx, c, clock, calls)
		if err != nil {
			return nil, err
		}
		records := dynamo.New(dynamodb.NewFromConfig(cfg), storeOptions(c, log))
		b.store, b.ensure, b.clockOffset = records.Store, records.Ensure, clock.Offset
		b.region, b.calls = cfg.Region, calls
		b.hostKey = func(instanceID string) string { return instanceID }
		return b, nil
	}
	file, err := db.Open(c.Store.SQLite.Path, db.Options{Logger: log.Named("store"), ReadOnly: readOnly})
	if err != nil {
		return nil, err
	}
	b.store, b.close = sqlite.New(file).Store, file.Close
	return b, nil
}

// noHosts is the cloud and the queue of a fleet that has no hosts: nothing is there, and nothing can be launched.
type noHosts struct{}

var errNoHosts = fmt.Errorf("this fleet has no hosts, since its configuration has services only: %w", lifecycle.ErrRefused)

func (noHosts) Launch(context.Context, lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	return nil, errNoHosts
}

func (noHosts) Launched(context.Context, lifecycle.LaunchOrder) ([]lifecycle.Machine, error) {
	return nil, nil
}

func (noHosts) Describe(_ context.Context, instanceIDs []string) ([]lifecycle.Machine, error) {
	gone := make([]lifecycle.Machine, len(instanceIDs))
	for i, id := range instanceIDs {
		gone[i] = lifecycle.Machine{InstanceID: id, State: lifecycle.MachineGone}
	}
	return gone, nil
}

func (noHosts) List(context.Context, lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	return lifecycle.Page[lifecycle.Machine]{}, nil
}

func (noHosts) Stop(context.Context, string, bool) error { return errNoHosts }

func (noHosts) Start(context.Context, string) error { return errNoHosts }

func (noHosts) ReplaceRoot(context.Context, string, string) (lifecycle.RootTask, error) {
	return lifecycle.RootTask{}, errNoHosts
}

func (noHosts) RootTasks(context.Context, []string) ([]lifecycle.RootTask, error) { return nil, nil }

func (noHosts) Terminate(context.Context, []string) error { return errNoHosts }

func (noHosts) Send(context.Context, ...lifecycle.Message) error { return errNoHosts }

func (noHosts) Receive(context.Context, lifecycle.QueueName, int) ([]lifecycle.Delivery, error) {
	return nil, nil
}

func (noHosts) Delete(context.Context, lifecycle.QueueName, ...string) error { return nil }

func (noHosts) Return(context.Context, lifecycle.QueueName, ...string) error { return nil }
