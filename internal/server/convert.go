package server

import (
	"maps"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// The words of the contract for the words of lifecycle.
var (
	states = map[lifecycle.State]remudav1.State{
		lifecycle.StateCreated:    remudav1.State_STATE_CREATED,
		lifecycle.StateRunning:    remudav1.State_STATE_RUNNING,
		lifecycle.StateIdle:       remudav1.State_STATE_IDLE,
		lifecycle.StateClaimed:    remudav1.State_STATE_CLAIMED,
		lifecycle.StateTerminated: remudav1.State_STATE_TERMINATED,
	}
	usageClasses = map[lifecycle.UsageClass]remudav1.UsageClass{
		lifecycle.UsageOnDemand: remudav1.UsageClass_USAGE_CLASS_ON_DEMAND,
		lifecycle.UsageSpot:     remudav1.UsageClass_USAGE_CLASS_SPOT,
	}
	signals = map[lifecycle.Signal]remudav1.Signal{
		lifecycle.SignalOK:              remudav1.Signal_SIGNAL_UD_OK,
		lifecycle.SignalFailed:          remudav1.Signal_SIGNAL_UD_FAILED,
		lifecycle.SignalRegOK:           remudav1.Signal_SIGNAL_UD_REG_OK,
		lifecycle.SignalRegFailed:       remudav1.Signal_SIGNAL_UD_REG_FAILED,
		lifecycle.SignalRemoveRegOK:     remudav1.Signal_SIGNAL_UD_REMOVE_REG_OK,
		lifecycle.SignalRemoveRegFailed: remudav1.Signal_SIGNAL_UD_REMOVE_REG_FAILED,
	}
	reuses = map[lifecycle.Reuse]remudav1.Reuse{
		lifecycle.ReuseSameRepository: remudav1.Reuse_REUSE_SAME_REPOSITORY,
		lifecycle.ReuseSameOwner:      remudav1.Reuse_REUSE_SAME_OWNER,
		lifecycle.ReuseNone:           remudav1.Reuse_REUSE_NONE,
	}
	resourceChanges = map[lifecycle.ResourceChange]remudav1.ResourceChange{
		lifecycle.ResourceCreated: remudav1.ResourceChange_RESOURCE_CHANGE_CREATED,
		lifecycle.ResourceUpdated: remudav1.ResourceChange_RESOURCE_CHANGE_UPDATED,
	}
	statesBack       = invert(states)
	usageClassesBack = invert(usageClasses)
)

func invert[K, V comparable](m map[K]V) map[V]K {
	back := make(map[V]K, len(m))
	for k, v := range maps.All(m) {
		back[v] = k
	}
	return back
}

// action is the contract's name of an action: ACTION_ and its own in capitals.
func action(a lifecycle.Action) remudav1.Action {
	return remudav1.Action(remudav1.Action_value["ACTION_"+strings.ToUpper(string(a))])
}

// condition is the state in a Record.Condition, which tells the halves of idle apart.
func condition(c string) remudav1.State {
	word, _, _ := strings.Cut(c, " ")
	return states[lifecycle.State(word)]
}

// timestampOrNil is absent for the zero time.
func timestampOrNil(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// instance is a host as callers see it: its record, and what its agent says.
func (s *service) instance(r lifecycle.Record, report *lifecycle.Report) *remudav1.Instance {
	i := &remudav1.Instance{
		InstanceId: r.InstanceID, Pool: r.Pool, State: states[r.State], Repository: r.Repository, RunId: r.RunID,
		RunAttempt: int32(r.RunAttempt), RequestId: r.RequestID, Labels: r.Labels, Assignment: r.Assignment,
		Threshold: timestampOrNil(r.Threshold), ResourceClass: r.ResourceClass, UsageClass: usageClasses[r.UsageClass],
		InstanceType: r.InstanceType, Cpu: int32(r.CPU), MemoryMib: int32(r.MemoryMiB), Zone: r.Zone,
		PooledTime: timestampOrNil(r.PooledAt), CreateTime: timestampOrNil(r.CreatedAt), UpdateTime: timestampOrNil(r.UpdatedAt),
		HoldTime: timestampOrNil(r.Hold), Retiring: r.Retiring, InterruptionTime: timestampOrNil(r.InterruptionAt), Reason: r.Reason,
		OrphanTime: timestampOrNil(r.OrphanAt), IdleTime: timestampOrNil(r.IdleDetectedAt),
	}
	if report == nil {
		return i
	}
	if r.InterruptionAt.IsZero() {
		i.InterruptionTime = timestampOrNil(report.InterruptionAt)
	}
	i.Busy, i.HeartbeatTime = report.Busy, timestampOrNil(report.HeartbeatAt)
	if report.Assignment == r.Assignment {
		i.Signal, i.Detail = signals[report.Signal], strings.ToValidUTF8(report.Detail, "\uFFFD")
	}
	i.Healthy = fleet.Healthy(r, report, time.Now(), s.fleet.Policy(r.Pool)) && !failures[i.GetSignal()]
	return i
}

// failures are the signals of a host that could not do what it was asked to.
var failures = map[remudav1.Signal]bool{
	remudav1.Signal_SIGNAL_UD_FAILED:            true,
	remudav1.Signal_SIGNAL_UD_REG_FAILED:        true,
	remudav1.Signal_SIGNAL_UD_REMOVE_REG_FAILED: true,
}

func (s *service) instances(records []lifecycle.Record, reports map[string]lifecycle.Report) []*remudav1.Instance {
	list := make([]*remudav1.Instance, 0, len(records))
	for _, r := range records {
		var report *lifecycle.Report
		if told, ok := reports[r.HostKey]; ok {
			report = &told
		}
		list = append(list, s.instance(r, report))
	}
	return list
}

func event(e lifecycle.Event) *remudav1.Event {
	return &remudav1.Event{
		EventTime: timestampOrNil(e.At), Action: action(e.Action), InstanceId: e.InstanceID, Repository: e.Repository,
		RunId: e.RunID, RequestId: e.RequestID, Assignment: e.Assignment,
		FromState: condition(e.From), ToState: condition(e.To), Reason: e.Reason, ReasonCode: string(e.Code),
	}
}
