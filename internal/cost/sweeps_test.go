package cost_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	ec2api "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// swept is what each sweep uses in a fleet of so many hosts.
type swept struct {
	hosts int
	// rest is a due sweep that finds nothing; ends and ended are those that end
	// so many hosts, and that forget them once EC2 has ended the machines.
	rest        cost.Usage
	ends, ended map[int]cost.Usage
	liveness    cost.Usage
	cloud       cost.Usage
	lease       cost.Usage
}

// dueTogether is how many hosts are due in the sweeps that end some.
var dueTogether = []int{1, 10}

// machinesAtMost are on moto, which is slow with more.
const machinesAtMost = 100

// measureSweeps makes a fleet that waits in the pool, machines and all.
func measureSweeps(t *testing.T, hosts int) swept {
	w := newWorld(t)
	ids := w.run(min(hosts, machinesAtMost))
	for n := len(ids); n < hosts; n++ {
		ids = append(ids, instanceID(n))
	}
	records := make([]lifecycle.Record, len(ids))
	for i, id := range ids {
		records[i] = w.pooled(id)
	}
	w.create(records...)

	s := swept{hosts: hosts, ends: map[int]cost.Usage{}, ended: map[int]cost.Usage{}}
	s.rest = w.sweep(w.fleet.NewDueSweep())
	s.liveness = w.sweep(w.fleet.NewLivenessSweep())
	s.cloud = w.cloudSweep(records)
	s.lease = w.keepLease()
	for _, k := range dueTogether {
		w.expire(records[:k])
		s.ends[k] = w.sweep(w.fleet.NewDueSweep())
		w.clock.set(w.clock.now().Add(lifecycle.DefaultPolicy().EndPoll))
		s.ended[k] = w.sweep(w.fleet.NewDueSweep())
		w.wantForgotten(records[:k])
		records = records[k:]
	}
	return s
}

// cloudSweep asks EC2 for the machines, unless there are more than moto has:
// then they are listed without a call, and only the store's are counted.
func (w *world) cloudSweep(records []lifecycle.Record) cost.Usage {
	w.t.Helper()
	if len(records) > machinesAtMost {
		return w.sweep(w.newFleet(listed{w.compute, records}).NewCloudSweep())
	}
	w.sweep(w.fleet.NewCloudSweep())  // the first asks what EC2's types are
	w.templatesAge += 5 * time.Minute // since the sweep before
	return w.sweep(w.fleet.NewCloudSweep())
}

// listed is EC2 with a machine for each record.
type listed struct {
	*ec2.Compute
	records []lifecycle.Record
}

func (l listed) List(_ context.Context, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Machine], error) {
	var page lifecycle.Page[lifecycle.Machine]
	for _, r := range l.records {
		page.Items = append(page.Items, lifecycle.Machine{
			InstanceID: r.InstanceID, HostKey: r.HostKey, State: lifecycle.MachineRunning, LaunchedAt: r.LaunchedAt,
		})
	}
	return page, nil
}

// run launches machines, as one launch of ours tags them.
func (w *world) run(n int) (ids []string) {
	w.t.Helper()
	tag := func(key, value string) types.Tag { return types.Tag{Key: sdk.String(key), Value: sdk.String(value)} }
	out, err := w.ec2.RunInstances(w.t.Context(), &ec2api.RunInstancesInput{
		ImageId: &w.image, InstanceType: types.InstanceTypeC6iLarge, SubnetId: &w.subnet,
		MinCount: sdk.Int32(int32(n)), MaxCount: sdk.Int32(int32(n)),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{
			tag(ec2.TagFleet, prefix), tag(ec2.TagRole, roleID), tag(ec2.TagPool, "default"), tag(ec2.TagRepository, repository),
			tag(ec2.TagRunID, "4711"), tag(ec2.TagRequestID, requestID), tag(ec2.TagLaunch, strconv.Itoa(1)),
			tag(ec2.TagResourceClass, "large"),
		}}},
	})
	w.must(err)
	for _, instance := range out.Instances {
		ids = append(ids, *instance.InstanceId)
	}
	return ids
}

func (w *world) sweep(op fleet.Op) cost.Usage {
	w.t.Helper()
	return w.meter.of(func() { w.drive(op, "", w.clock.now().Add(time.Hour)) })
}

// expire lets hosts have waited for as long as they may.
func (w *world) expire(records []lifecycle.Record) {
	w.t.Helper()
	for _, r := range records {
		r.Threshold, r.DueAt = w.clock.now(), w.clock.now()
		_, err := w.plain.UpdateInstance(w.t.Context(), r)
		w.must(err)
	}
}

func (w *world) wantForgotten(records []lifecycle.Record) {
	w.t.Helper()
	for _, r := range records {
		got, err := w.plain.Instance(w.t.Context(), r.HostKey)
		w.must(err)
		if got.State != lifecycle.StateTerminated || !got.DueAt.IsZero() {
			w.t.Errorf("%s is %s and due at %s, want it terminated and never due", r.InstanceID, got.State, got.DueAt)
		}
	}
}

// keepLease is what it costs to hold the sweepers' lease for one more time.
func (w *world) keepLease() cost.Usage {
	w.t.Helper()
	s := w.fleet.NewSweeper()
	take := func() {
		if _, err := s.Step(w.t.Context(), w.clock.now()); err != nil {
			w.t.Error(err)
		}
	}
	take()
	w.clock.set(w.clock.now().Add(10 * time.Second)) // beyond a third of a lease
	return w.meter.of(take)
}
