package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
	"github.com/remuda-ci/remuda/internal/host/power"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

func TestLifeOfAnInstance(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	i.start()
	i.ready("101")
	i.startRun("101", "${{ github.run_id }}", "echo hello")
	if j := i.finished("101"); j.Conclusion != "success" {
		t.Errorf("job of run 101: %s\n%s", j.Conclusion, j.Log)
	}
	i.release()
	if p := i.signaled(lifecycle.SignalRemoveRegOK); p.HostKey != i.roleID+":"+i.id {
		t.Errorf("the report is of %s", p.HostKey)
	}
	i.apply(lifecycle.ActionTerminate, false)
	if code := i.exited(); code != 0 {
		t.Errorf("agentd exited with %d, want 0", code)
	}
	if !i.ended() || i.poweredOff() {
		t.Errorf("the instance was ended: %v, and powered off: %v", i.ended(), i.poweredOff())
	}
	// The policy of hosts has all that they call and nothing else; who they are
	// they may ask without one.
	want := []string{"sts:GetCallerIdentity"}
	for _, p := range slices.Concat(dynamo.Actions(), power.Actions()) {
		if p.Role == aws.RoleHost {
			want = append(want, p.Action)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(i.calls()))); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if n := i.calls()["sts:GetCallerIdentity"]; n != 1 {
		t.Errorf("asked %d times who it is, want once", n)
	}
	if n := i.metadata.V1Calls(); n != 0 {
		t.Errorf("asked the metadata %d times without a token", n)
	}
	// A date has whole seconds: the clocks still agree.
	if strings.Contains(i.log(), "clock corrected") {
		t.Error("the clock was corrected by that of this same machine")
	}
}

func TestInterruptionNoticeIsReported(t *testing.T) {
	t.Parallel()
	i := newInstance(t)
	i.start()
	i.create("101")
	i.signaled(lifecycle.SignalRegOK)
	if p := i.report(); !p.InterruptionAt.IsZero() {
		t.Errorf("interruption at %s without a notice", p.InterruptionAt)
	}
	at := time.Now().Add(2 * time.Minute).UTC().Truncate(time.Second)
	i.metadata.Change(func(m *imdstest.Machine) { m.InterruptionAt = at })
	i.eventually("the notice is reported", func() bool { return i.report().InterruptionAt.Equal(at) })
}

// EC2 does not take on-demand instances back, so the agent does not ask.
func TestOnDemandInstanceLooksForNoNotice(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAnInstance")
	t.Parallel()
	i := newInstance(t)
	i.metadata.Change(func(m *imdstest.Machine) { m.Lifecycle = "on-demand" })
	i.start()
	i.create("101")
	i.signaled(lifecycle.SignalRegOK)
	for _, c := range i.metadata.Calls() {
		if strings.Contains(c.Path, "/spot/") {
			t.Errorf("asked for %s", c.Path)
		}
	}
}

func TestClockOfTheStoreCounts(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAnInstance")
	t.Parallel()
	i := newInstance(t)
	const ahead = time.Hour
	i.aws.Handle("dynamodb", "GetItem", shifted(ahead))
	i.start()
	i.create("101", func(r *lifecycle.Record) { r.Threshold = r.Threshold.Add(ahead) })
	i.logs("clock corrected by the store's")
	i.eventually("a heartbeat by the store's clock", func() bool {
		return i.report().HeartbeatAt.After(time.Now().Add(ahead - 10*time.Minute))
	})
	if n := strings.Count(i.log(), "clock corrected"); n != 1 {
		t.Errorf("the clock was corrected %d times, want once", n)
	}
}

// Credentials, STS and metadata may all come late: the host waits.
func TestLateInstance(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAnInstance")
	t.Parallel()
	i := newInstance(t)
	i.metadata.Fail(imdstest.Fault{Path: "/latest/dynamic", Status: http.StatusNotFound, Times: 2})
	i.metadata.Fail(imdstest.Fault{Path: "/latest/meta-data/iam", Status: http.StatusNotFound})
	i.aws.Inject(awstest.Fault{Service: "sts", Kind: awstest.InternalError})
	i.create("101")
	i.start()
	i.logs("instance metadata does not identify this machine")
	i.logs("no AWS credentials")
	i.metadata.Heal()
	i.eventually("STS is asked", func() bool { return i.calls()["sts:GetCallerIdentity"] > 0 })
	i.aws.Heal()
	i.signaled(lifecycle.SignalRegOK)
}

// An agent that starts without an identity leaves the job alone.
func TestJobOutlivesALostIdentity(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAnInstance")
	t.Parallel()
	i := newInstance(t, func(c map[string]any) { c["boot_timeout"] = "1s" })
	i.create("101")
	i.start()
	i.signaled(lifecycle.SignalRegOK)
	i.apply(lifecycle.ActionReady, false)
	open := i.jobBehind()
	i.aws.Inject(awstest.Fault{Service: "sts", Kind: awstest.InternalError})
	i.kill()
	i.start()
	i.eventually("STS is asked in vain", func() bool { return i.calls()["sts:GetCallerIdentity"] > 4 })
	i.aws.Heal()
	if p := i.heard(); !p.Busy {
		t.Errorf("report: %+v", p)
	}
	open()
	if j := i.finished("101"); j.Conclusion != "success" {
		t.Errorf("job: %s\n%s", j.Conclusion, j.Log)
	}
}

// EC2 may not let a host end itself. Then the host powers itself off.
func TestEndThatEC2Refuses(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAnInstance")
	t.Parallel()
	i := newInstance(t)
	i.aws.Handle("ec2", "TerminateInstances", refuse("UnauthorizedOperation"))
	i.start()
	i.ready("101")
	i.apply(lifecycle.ActionTerminate, false)
	if code := i.exited(); code != 0 {
		t.Errorf("agentd exited with %d, want 0", code)
	}
	if !i.poweredOff() || i.ended() {
		t.Errorf("powered off: %v, want true; ended by EC2: %v, want false", i.poweredOff(), i.ended())
	}
	i.logs("allow the action ec2:TerminateInstances")
}

// What makes a host useless for now is reported at once, with advice, and ends
// the host when its boot takes too long: it costs money and does no work.
func TestHostWithoutItsRecord(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAnInstance")
	t.Parallel()
	tests := map[string]struct {
		spoil  func(i *instance)
		want   string
		config func(config map[string]any)
	}{
		"unknown":        {want: "no record of this host"},
		"no tables here": {want: "there is no table missing-instances in us-east-1: run Refresh", config: inDynamoDB("prefix", "missing")},
		"tables in another region": {want: "there is no table acme-instances in eu-west-1: run Refresh",
			config: inDynamoDB("region", "eu-west-1")},
		"expired credentials": {spoil: func(i *instance) { i.aws.Handle("dynamodb", "GetItem", refuse("ExpiredTokenException")) },
			want: "give valid credentials"},
		"no permission": {spoil: func(i *instance) { i.aws.Handle("dynamodb", "GetItem", refuse("AccessDeniedException")) },
			want: "allow the action dynamodb:GetItem"},
		"no instance profile": {spoil: func(i *instance) { i.metadata.Change(func(m *imdstest.Machine) { m.Role = "" }) },
			want: "no AWS credentials"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInstance(t, func(c map[string]any) {
				c["boot_timeout"] = "2s"
				if tt.config != nil {
					tt.config(c)
				}
			})
			if tt.spoil != nil {
				tt.spoil(i)
			}
			i.start()
			if code := i.exited(); code != 0 {
				t.Errorf("agentd exited with %d, want 0", code)
			}
			if !strings.Contains(i.log(), tt.want) {
				t.Errorf("%q is not in the log", tt.want)
			}
			if i.ended() == i.poweredOff() {
				t.Errorf("ended by EC2: %v, powered off: %v, want one of them", i.ended(), i.poweredOff())
			}
		})
	}
}

// A problem that waiting cannot solve ends agentd permanently.
func TestInstanceThatIsSomebodyElse(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAnInstance")
	t.Parallel()
	tests := map[string]struct {
		change func(m *imdstest.Machine)
		want   []string
	}{
		"credentials of another instance": {func(m *imdstest.Machine) { m.InstanceID = "i-0fedcba9876543210" },
			[]string{"not of the instance profile of i-0fedcba9876543210"}},
		"a role that was created again": {func(m *imdstest.Machine) { m.Tags["remuda:role"] = "AROAOLDEXAMPLE" },
			[]string{"AROAOLDEXAMPLE", "the role was created again"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInstance(t)
			i.metadata.Change(tt.change)
			i.start()
			if code := i.exited(); code != exitConfiguration {
				t.Errorf("agentd exited with %d, want %d", code, exitConfiguration)
			}
			for _, want := range tt.want {
				if !strings.Contains(i.log(), want) {
					t.Errorf("%q is not in the log", want)
				}
			}
			if i.ended() || i.poweredOff() {
				t.Errorf("ended by EC2: %v, powered off: %v", i.ended(), i.poweredOff())
			}
		})
	}
}

func TestMachineThatIsNotInEC2(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAnInstance")
	t.Parallel()
	i := bareInstance(t, func(c map[string]any) { c["boot_timeout"] = "1s" })
	i.metadata.Fail(imdstest.Fault{Status: http.StatusNotFound})
	i.start()
	if code := i.exited(); code != exitFailure {
		t.Errorf("agentd exited with %d, want %d", code, exitFailure)
	}
	for _, want := range []string{"identify this instance", "write instance_id"} {
		if !strings.Contains(i.log(), want) {
			t.Errorf("%q is not in the log", want)
		}
	}
}

// A host with a configured identity asks neither the metadata nor STS for it.
func TestConfiguredIdentity(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAnInstance")
	t.Parallel()
	id := anyID()
	i := newInstance(t, func(c map[string]any) {
		c["store"] = map[string]any{"dynamodb": map[string]any{"region": region, "prefix": "acme"}}
		delete(c, "host_file")
		delete(c, "power_off")
	}, func(c map[string]any) { c["instance_id"], c["host_key"] = id, "ROLE:"+id })
	i.id, i.key = id, "ROLE:"+id
	i.env = i.aws.Environ()
	i.start()
	i.ready("101")
	i.apply(lifecycle.ActionTerminate, false)
	if code := i.exited(); code != 0 {
		t.Errorf("agentd exited with %d, want 0", code)
	}
	want := []string{"dynamodb:GetItem", "dynamodb:UpdateItem"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(i.calls()))); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if n := len(i.metadata.Calls()); n > 0 {
		t.Errorf("asked the metadata %d times", n)
	}
}

// inDynamoDB sets a key of store.dynamodb.
func inDynamoDB(key, value string) func(config map[string]any) {
	return func(c map[string]any) { c["store"] = map[string]any{"dynamodb": map[string]any{key: value}} }
}

func TestHostThatIsToldNoRegion(t *testing.T) {
	racepass.CoveredBy(t, "TestLifeOfAnInstance")
	t.Parallel()
	m := emptyMachine(t, anyID())
	m.configure(map[string]any{"instance_id": m.id, "store": map[string]any{"dynamodb": map[string]any{}}}, nil)
	m.env = []string{"AWS_REGION=", "AWS_DEFAULT_REGION=", "AWS_PROFILE=", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null"}
	m.start()
	if code := m.exited(); code != exitConfiguration || !strings.Contains(m.log(), "no region: write it in the configuration") {
		t.Errorf("agentd exited with %d, want %d:\n%s", code, exitConfiguration, m.log())
	}
}
