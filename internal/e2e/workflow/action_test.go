package workflow_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// TestAction: a step gets hosts, the next one gives them back, and so does a step whose hosts are for its job alone.
func TestAction(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := newDevStage(t)
	first := s.step("7001", map[string]string{"hosts": "2", "labels": "remuda-large"})
	first.phase(0)
	if first.state["phase"] != "given" {
		t.Errorf("the step has saved %v", first.state)
	}
	out := first.told("GITHUB_OUTPUT")
	var hosts []string
	if err := json.Unmarshal([]byte(out["hosts"]), &hosts); err != nil {
		t.Fatalf("output hosts: %v", err)
	}
	if d := cmp.Diff(s.hostsOf("7001"), slices.Sorted(slices.Values(hosts))); d != "" {
		t.Errorf("output hosts: %s", d)
	}
	delete(out, "hosts")
	want := map[string]string{"label": "7001", "count": "2", "reused": "0", "request-id": "attempt-1-hosts-__self"}
	if d := cmp.Diff(want, out); d != "" {
		t.Errorf("outputs: %s", d)
	}
	for _, text := range append(hosts, "### Remuda: 2 hosts for run 7001", "0 from the pool, 2 launched") {
		if !strings.Contains(first.text("GITHUB_STEP_SUMMARY"), text) {
			t.Errorf("the summary lacks %q:\n%s", text, first.text("GITHUB_STEP_SUMMARY"))
		}
	}
	first.phase(0) // its post phase: the hosts are for the jobs that follow
	if d := cmp.Diff([]string{"Provision OK"}, s.calls("7001")); d != "" {
		t.Errorf("calls: %s", d)
	}
	giving := s.step("7001", map[string]string{"mode": "release"})
	giving.phase(0)
	giving.says("Run 7001 has given back 2 hosts")
	giving.phase(0)
	if d := cmp.Diff([]string{"Provision OK", "Release OK"}, s.calls("7001")); d != "" {
		t.Errorf("calls: %s", d)
	}
	pooled := s.pooled(2)

	// The first token is expired, and then the service of tokens fails once.
	second := s.step("7002", map[string]string{"hosts": "2", "mode": "job"})
	second.tokens.alter = func(n int, claims map[string]any) bool {
		if n == 0 {
			claims["exp"] = time.Now().Add(-2 * time.Minute).Unix()
		}
		return n != 1
	}
	second.phase(0)
	second.says("trying again")
	if d := cmp.Diff(pooled, s.hostsOf("7002")); d != "" {
		t.Errorf("the hosts of the second run: %s", d)
	}
	second.phase(0)
	second.says("Run 7002 has given back 2 hosts")
	s.pooled(2)
	for _, step := range []*actionStep{first, giving, second} {
		step.keepsSecrets()
	}
	s.noTokenIsIn(s.log.String())
}

// TestActionIsRefused: what is wrong is said, with the remedy, and the end of the job has nothing to give back.
func TestActionIsRefused(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := newDevStage(t)
	for name, test := range map[string]struct {
		inputs  map[string]string
		change  func(*actionStep)
		says    string
		phase   string
		answers []string
	}{
		"more than the rule allows": {
			inputs: map[string]string{"hosts": "3"}, says: "3 hosts are more than the 2", phase: "refused", answers: []string{"Provision PermissionDenied"},
		},
		"no such pool": {
			inputs: map[string]string{"pool": "none"}, says: "pool none", phase: "refused", answers: []string{"Provision PermissionDenied"},
		},
		"token for another audience": {
			inputs: map[string]string{"audience": "https://else.test"}, says: "audience", phase: "refused",
			answers: slices.Repeat([]string{"Provision Unauthenticated"}, 3),
		},
		"no permission": {change: func(a *actionStep) { a.tokens = nil }, says: "id-token: write", phase: "begun"},
		"bad inputs":    {inputs: map[string]string{"hosts": "0", "address": "nowhere"}, says: "input hosts: ", phase: "begun"},
	} {
		t.Run(name, func(t *testing.T) {
			step := s.step("7100", test.inputs)
			step.T = t
			if test.change != nil {
				test.change(step)
			}
			before := len(s.calls("7100"))
			step.phase(1)
			step.says("::error::")
			step.says(test.says)
			if step.state["phase"] != test.phase {
				t.Errorf("the phase is %q and not %q", step.state["phase"], test.phase)
			}
			if d := cmp.Diff(test.answers, s.calls("7100")[before:], cmpopts.EquateEmpty()); d != "" {
				t.Errorf("calls: %s", d)
			}
			step.keepsSecrets()
		})
	}
	s.nothingProvisioned()
}

// TestActionWaits: steps wait for a pool that is paused, and say why. One goes on over another connection after the first one is cut. One is canceled, and
// gives back what it asked for.
func TestActionWaits(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := newDevStage(t)
	if _, err := s.admin.PausePool(s.ctx, &remudav1.PausePoolRequest{Pool: "default", Reason: "the racks are being moved"}); err != nil {
		t.Fatal(err)
	}
	lines := s.newPartition()
	staying := s.step("7201", map[string]string{"hosts": "2", "address": "http://" + lines.addr})
	leaving := s.step("7202", nil)
	staying.begin()
	leaving.begin()
	staying.saysBefore("paused")
	leaving.saysBefore("paused")

	lines.cut()
	if err := leaving.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	leaving.end(1)
	leaving.says("Run 7202 has given back 0 hosts")
	leaving.says("::error::The step was canceled.")
	if leaving.state["phase"] != "returned" {
		t.Errorf("the canceled step has saved %v", leaving.state)
	}
	leaving.phase(0) // which has nothing left to do
	staying.saysBefore("no answer from controld")
	lines.mend()

	if _, err := s.admin.ResumePool(s.ctx, &remudav1.ResumePoolRequest{Pool: "default"}); err != nil {
		t.Fatal(err)
	}
	staying.end(0)
	if n := len(s.hostsOf("7201")); n != 2 {
		t.Errorf("the run that waited has %d hosts", n)
	}
	if n := len(s.hostsOf("7202")); n != 0 {
		t.Errorf("the canceled run has %d hosts", n)
	}
	staying.keepsSecrets()
	leaving.keepsSecrets()
}

// TestActionGivesBackWhatItMayHave: the runner killed the step, so its job ends without knowing. The controld is one with TLS: without its
// certificate the step gets nowhere.
func TestActionGivesBackWhatItMayHave(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := newStage(t)
	stranger := s.step("7300", map[string]string{"ca": ""})
	stranger.phase(1)
	stranger.says("::error::")
	stranger.says("input ca")
	if calls := s.calls("7300"); stranger.state["phase"] != "asked" || len(calls) > 0 {
		t.Errorf("without the certificate its phase is %q, after %v", stranger.state["phase"], calls)
	}
	stranger.keepsSecrets()

	step := s.step("7301", nil)
	step.phase(0)
	step.state["phase"] = "asked"
	step.phase(0)
	step.says("Run 7301 has given back 1 host")
	// The service of tokens is gone, which must not fail a job.
	step.state["phase"] = "asked"
	step.tokens = nil
	step.phase(0)
	step.says("::warning::The hosts of this run were not given back: This job may not ask for an ID token.")
}

// hostsOf are the ids of the hosts of a run, in order.
func (s *stage) hostsOf(runID string) []string {
	s.Helper()
	var ids []string
	for _, i := range s.hosts() {
		if i.GetRunId() == runID {
			ids = append(ids, i.GetInstanceId())
		}
	}
	slices.Sort(ids)
	return ids
}
