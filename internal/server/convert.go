package server

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/services/model"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// enum makes the contract's name of a word of lifecycle: that word in capitals, after the prefix of its kind.
func enum[W ~string, E ~int32](values map[string]int32, prefix string) func(W) E {
	return func(word W) E { return E(values[prefix+strings.ToUpper(strings.ReplaceAll(string(word), "-", "_"))]) }
}

var (
	state          = enum[lifecycle.State, remudav1.State](remudav1.State_value, "STATE_")
	usageClass     = enum[lifecycle.UsageClass, remudav1.UsageClass](remudav1.UsageClass_value, "USAGE_CLASS_")
	signal         = enum[lifecycle.Signal, remudav1.Signal](remudav1.Signal_value, "SIGNAL_")
	reuse          = enum[lifecycle.Reuse, remudav1.Reuse](remudav1.Reuse_value, "REUSE_")
	resourceChange = enum[resources.Change, remudav1.ResourceChange](remudav1.ResourceChange_value, "RESOURCE_CHANGE_")
	action         = enum[lifecycle.Action, remudav1.Action](remudav1.Action_value, "ACTION_")
	workState      = enum[model.JobState, remudav1.WorkerJobState](remudav1.WorkerJobState_value, "WORKER_JOB_STATE_")
)

// wordOf is the one of the words that the contract calls by a name; empty if no word is called so.
func wordOf[E comparable, W ~string](name E, words []W, nameOf func(W) E) W {
	if i := slices.IndexFunc(words, func(w W) bool { return nameOf(w) == name }); i >= 0 {
		return words[i]
	}
	return ""
}

// condition is the state in a Record.Condition, which tells the halves of idle apart.
func condition(c string) remudav1.State {
	word, _, _ := strings.Cut(c, " ")
	return state(lifecycle.State(word))
}

// timestampOrNil is absent for the zero time.
func timestampOrNil(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// stoppedSince is since when the machine of a host is to be stopped; zero: it is not.
func stoppedSince(r lifecycle.Record) time.Time {
	if r.Stop == nil {
		return time.Time{}
	}
	return r.Stop.At
}

// resetsSince is since when a host waits for its new root volume; zero: it does not.
func resetsSince(r lifecycle.Record) time.Time {
	if v := r.RootVolume; v != nil && v.ReplacedAt.IsZero() {
		return v.At
	}
	return time.Time{}
}

// instance is a host as callers see it: its record, and what its agent says.
func (s *service) instance(r lifecycle.Record, report *lifecycle.Report) *remudav1.Instance {
	i := &remudav1.Instance{
		InstanceId: r.InstanceID, Pool: r.Pool, State: state(r.State), Repository: r.Repository, RunId: r.RunID,
		RunAttempt: int32(r.RunAttempt), RequestId: r.RequestID, Labels: r.Labels, Assignment: r.Assignment,
		Threshold: timestampOrNil(r.Threshold), ResourceClass: r.ResourceClass, UsageClass: usageClass(r.UsageClass),
		InstanceType: r.InstanceType, Cpu: int32(r.CPU), MemoryMib: int32(r.MemoryMiB), Zone: r.Zone,
		PooledTime: timestampOrNil(r.PooledAt), RestingTime: timestampOrNil(r.RestingAt), CreateTime: timestampOrNil(r.CreatedAt), UpdateTime: timestampOrNil(r.UpdatedAt),
		HoldTime: timestampOrNil(r.Hold), Retiring: r.Retiring, RetiringReason: r.RetiringReason, InterruptionTime: timestampOrNil(r.InterruptionAt), Reason: r.Reason, ReasonCode: string(r.ReasonCode),
		Hot: r.Hot(), StopTime: timestampOrNil(stoppedSince(r)), ResetTime: timestampOrNil(resetsSince(r)), OrphanTime: timestampOrNil(r.OrphanAt), IdleTime: timestampOrNil(r.IdleDetectedAt),
	}
	i.Caches = s.caches(r)
	if report == nil {
		return i
	}
	i.CacheBytes = uint64(max(0, report.CacheBytes))
	if r.InterruptionAt.IsZero() {
		i.InterruptionTime = timestampOrNil(report.InterruptionAt)
	}
	i.Busy, i.HeartbeatTime = report.Busy, timestampOrNil(report.HeartbeatAt)
	if report.Assignment == r.Assignment {
		i.Signal, i.Detail = signal(report.Signal), strings.ToValidUTF8(report.Detail, "\uFFFD")
	}
	i.Healthy = fleet.Healthy(r, report, s.now(), s.fleet.Policy(r.Pool)) && !failures[i.GetSignal()]
	return i
}

func (s *service) caches(r lifecycle.Record) (list []*remudav1.HostCache) {
	if r.Caches == "" {
		return nil
	}
	names := s.fleet.CacheNames(r)
	for _, held := range r.Caches.Held() {
		list = append(list, &remudav1.HostCache{Key: held.Key, Name: names[held.Key], Bytes: uint64(held.Bytes), CommitTime: timestampOrNil(held.CommittedAt)})
	}
	return list
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

func workflowJob(j fleet.RunningJob) *remudav1.WorkflowJob {
	return &remudav1.WorkflowJob{
		JobId: j.ID, Name: j.Name, Repository: j.Repository, RunId: j.RunID, RunAttempt: int32(j.RunAttempt), Url: j.URL,
		StartTime: timestampOrNil(j.StartedAt),
	}
}

// resetStatement is the statement that an event has.
func resetStatement(e lifecycle.Event) *remudav1.ResetStatement {
	return &remudav1.ResetStatement{InstanceId: e.InstanceID, Assignment: e.Assignment, Envelope: e.Statement, PublicKey: e.AgentKey.Bytes()}
}

func event(e lifecycle.Event) *remudav1.Event {
	return &remudav1.Event{
		EventTime: timestampOrNil(e.At), Action: action(e.Action), InstanceId: e.InstanceID, Repository: e.Repository,
		RunId: e.RunID, RequestId: e.RequestID, Assignment: e.Assignment,
		FromState: condition(e.From), ToState: condition(e.To), Reason: e.Reason, ReasonCode: string(e.Code), Pool: e.Pool,
		JobId: e.JobID, JobName: line.First(e.JobName), BeginTime: timestampOrNil(e.Since),
	}
}
