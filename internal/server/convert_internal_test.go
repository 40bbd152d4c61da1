package server

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/services/model"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// complete fails when a word of ours has no word of the contract, or the
// contract one that we never say.
func complete[K comparable, V ~int32](t *testing.T, what string, words []K, to func(K) V, names map[int32]string) {
	t.Helper()
	said := map[V]bool{0: true} // unspecified
	for _, word := range words {
		v := to(word)
		if v == 0 {
			t.Errorf("%s: %v has no value in the contract", what, word)
		}
		said[v] = true
	}
	for v, name := range names {
		if !said[V(v)] {
			t.Errorf("%s: nothing of ours is %s", what, name)
		}
	}
}

func TestTheWordsOfTheContractAreComplete(t *testing.T) {
	complete(t, "state", lifecycle.States, state, remudav1.State_name)
	complete(t, "usage class", lifecycle.UsageClasses, usageClass, remudav1.UsageClass_name)
	complete(t, "signal", lifecycle.Signals[1:], signal, remudav1.Signal_name)
	complete(t, "reuse", lifecycle.Reuses, reuse, remudav1.Reuse_name)
	complete(t, "resource change", []resources.Change{resources.Created, resources.Updated}, resourceChange, remudav1.ResourceChange_name)
	complete(t, "state of a worker job", model.JobStates, workState, remudav1.WorkerJobState_name)
	complete(t, "action", lifecycle.Actions, action, remudav1.Action_name)
	for _, s := range lifecycle.States {
		if wordOf(state(s), lifecycle.States, state) != s {
			t.Errorf("state %s does not come back", s)
		}
	}
	for _, c := range []string{"idle (releasing)", "idle (pooled)"} {
		if condition(c) != remudav1.State_STATE_IDLE {
			t.Errorf("condition %q is %s", c, condition(c))
		}
	}
}

func TestASignalIsThatOfTheAssignment(t *testing.T) {
	f, err := fleet.New(fleet.Options{
		Store: struct{ fleet.Store }{}, Queue: struct{ fleet.Queue }{}, Compute: struct{ fleet.Compute }{},
		GitHub: struct{ fleet.GitHub }{}, Replica: "test", Pools: map[string]fleet.Pool{"default": {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{now: time.Now, fleet: f}
	record := lifecycle.Record{InstanceID: "i-1", State: lifecycle.StateClaimed, Assignment: 3}
	tests := map[string]struct {
		report  lifecycle.Report
		signal  remudav1.Signal
		healthy bool
	}{
		"of this one":                 {lifecycle.Report{Assignment: 3, Signal: lifecycle.SignalRegOK}, remudav1.Signal_SIGNAL_UD_REG_OK, true},
		"of the one before":           {lifecycle.Report{Assignment: 1, Signal: lifecycle.SignalRegOK}, remudav1.Signal_SIGNAL_UNSPECIFIED, true},
		"a failure":                   {lifecycle.Report{Assignment: 3, Signal: lifecycle.SignalRegFailed}, remudav1.Signal_SIGNAL_UD_REG_FAILED, false},
		"a failure of an earlier one": {lifecycle.Report{Assignment: 1, Signal: lifecycle.SignalRemoveRegFailed}, remudav1.Signal_SIGNAL_UNSPECIFIED, true},
		"not one of ours":             {lifecycle.Report{Assignment: 3, Signal: "UD_ROOT"}, remudav1.Signal_SIGNAL_UNSPECIFIED, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.report.HeartbeatAt = time.Now()
			got := s.instance(record, &tt.report)
			leaving := record
			leaving.Retiring, leaving.InterruptionAt = true, time.Now()
			if s.instance(leaving, &tt.report).GetHealthy() != tt.healthy {
				t.Error("a host is as healthy while it leaves as before")
			}
			if got.GetSignal() != tt.signal || got.GetHealthy() != tt.healthy {
				t.Errorf("got %s, healthy %t; want %s, %t", got.GetSignal(), got.GetHealthy(), tt.signal, tt.healthy)
			}
		})
	}
}

func TestCallsWithoutADeadlineGetOne(t *testing.T) {
	tests := map[string]struct {
		req  any
		want time.Duration
	}{
		"provision":        {&remudav1.ProvisionRequest{}, 11 * time.Minute},
		"provision in 5 m": {&remudav1.ProvisionRequest{Timeout: durationpb.New(5 * time.Minute)}, 6 * time.Minute},
		"release":          {&remudav1.ReleaseRequest{}, time.Minute},
		"release and wait": {&remudav1.ReleaseRequest{Wait: true}, 30 * time.Minute},
		"anything else":    {&remudav1.GetInstanceRequest{}, time.Minute},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := withDeadline(t.Context(), tt.req)
			defer cancel()
			deadline, ok := ctx.Deadline()
			if left := time.Until(deadline); !ok || left > tt.want || left < tt.want-10*time.Second {
				t.Errorf("%s left, want %s", left, tt.want)
			}
		})
	}
}
