package lifecycle_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

func TestReportCheck(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct {
		name   string
		change func(*lifecycle.Report)
		want   string // part of the error; empty: none
	}{
		{"as agents write it", func(*lifecycle.Report) {}, ""},
		{"empty", func(p *lifecycle.Report) { *p = lifecycle.Report{} }, ""},
		{"unknown signal", func(p *lifecycle.Report) { p.Signal = "UD_MAYBE" }, "signal is not one of ours"},
		{"signal in lower case", func(p *lifecycle.Report) { p.Signal = "ud_reg_ok" }, "signal is not one of ours"},
		{"unknown cause", func(p *lifecycle.Report) { p.Cause = "moon" }, "cause is not one of ours"},
		{"negative assignment", func(p *lifecycle.Report) { p.Assignment = -1 }, "assignment is negative"},
		{"negative served", func(p *lifecycle.Report) { p.Served = -1 }, "served is negative"},
		{"negative jobs", func(p *lifecycle.Report) { p.Jobs = -1 }, "jobs is negative"},
		{"longest detail", func(p *lifecycle.Report) { p.Detail = long(4096) }, ""},
		{"detail too long", func(p *lifecycle.Report) { p.Detail = long(4097) }, "detail is longer than 4096 bytes"},
		{"longest run", func(p *lifecycle.Report) { p.RunID = long(4096) }, ""},
		{"run too long", func(p *lifecycle.Report) { p.RunID = long(4097) }, "runId is longer than 4096 bytes"},
		{"longest short texts", func(p *lifecycle.Report) { p.BootID, p.AgentVersion, p.RunnerVersion = long(128), long(128), long(128) }, ""},
		{"runner version too long", func(p *lifecycle.Report) { p.RunnerVersion = long(129) }, "runnerVersion is longer than 128 bytes"},
		{"boot id too long", func(p *lifecycle.Report) { p.BootID = long(129) }, "bootId or agentVersion is longer than 128 bytes"},
		{"agent version too long", func(p *lifecycle.Report) { p.AgentVersion = long(129) }, "bootId or agentVersion is longer than 128 bytes"},
		{"caches", func(p *lifecycle.Report) { p.Caches, p.CacheBytes = "00000000000000aa:1:2", 1 }, ""},
		{"caches that are no list", func(p *lifecycle.Report) { p.Caches = cache.List(long(4096)) }, "caches is longer than 799 bytes"},
		{"a cache that is none", func(p *lifecycle.Report) { p.Caches = "../etc:1:2" }, "two numbers that are not negative"},
		{"negative bytes", func(p *lifecycle.Report) { p.CacheBytes = -1 }, "cacheBytes is negative"},
		{"a key", func(p *lifecycle.Report) { p.AgentKey = itsKey }, ""},
		{"no key", func(p *lifecycle.Report) { p.AgentKey = itsKey[1:] }, "agentKey is no public key of ed25519"},
		{"longest statement", func(p *lifecycle.Report) { p.Statement = long(4096) }, ""},
		{"statement too long", func(p *lifecycle.Report) { p.Statement = long(4097) }, "statement is longer than 4096 bytes"},
		{"heartbeat 30 s ahead", func(p *lifecycle.Report) { p.HeartbeatAt = now.Add(30 * time.Second) }, ""},
		{"heartbeat more than 30 s ahead", func(p *lifecycle.Report) { p.HeartbeatAt = now.Add(30*time.Second + 1) }, "heartbeatAt is more than 30s ahead"},
		{"heartbeat long ago", func(p *lifecycle.Report) { p.HeartbeatAt = now.AddDate(-1, 0, 0) }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := lifecycle.Report{HostKey: hostKey, HeartbeatAt: now, Assignment: 3, Signal: lifecycle.SignalRegOK, Cause: lifecycle.CauseHost}
			tt.change(&p)
			err := p.Check(now)
			switch {
			case tt.want == "" && err != nil:
				t.Fatalf("Check: %v", err)
			case tt.want != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.want)):
				t.Fatalf("Check: %v, want one that ends in %q", err, tt.want)
			case err != nil && len(err.Error()) > 200:
				t.Errorf("error repeats its input: %d bytes", len(err.Error()))
			}
		})
	}
}

func TestReportBelieved(t *testing.T) {
	sound := lifecycle.Report{HostKey: hostKey, HeartbeatAt: now, Assignment: 3, Signal: lifecycle.SignalRegOK, Busy: true, Jobs: 1}
	ahead := sound
	ahead.HeartbeatAt = now.Add(90 * time.Second)
	idle := ahead
	idle.Busy = false
	tests := map[string]struct {
		report lifecycle.Report
		want   *lifecycle.Report
	}{
		"sound":              {sound, &sound},
		"malformed and busy": {ahead, &lifecycle.Report{HostKey: hostKey, Busy: true}},
		"malformed and idle": {idle, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tt.report.Believed(now)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("believed (-want +got):\n%s", diff)
			}
			if (err == nil) != (name == "sound") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestWords(t *testing.T) {
	wire := []string{"", "UD_OK", "UD_FAILED", "UD_REG_OK", "UD_REG_FAILED", "UD_REMOVE_REG_OK", "UD_REMOVE_REG_FAILED"}
	if len(lifecycle.Signals) != len(wire) {
		t.Errorf("%d signals, want %d", len(lifecycle.Signals), len(wire))
	}
	for i, s := range lifecycle.Signals {
		if string(s) != wire[i] || !s.Valid() {
			t.Errorf("signal %q, want %q: a wire name", s, wire[i])
		}
	}
	for _, s := range lifecycle.States {
		if !s.Valid() {
			t.Errorf("state %q is not valid", s)
		}
	}
	if lifecycle.State("").Valid() || lifecycle.UsageClass("").Valid() || lifecycle.Signal("x").Valid() {
		t.Error("a word that means nothing is valid")
	}
	if !lifecycle.UsageClass("spot").Valid() || !lifecycle.UsageClass("on-demand").Valid() {
		t.Error("spot and on-demand are usage classes")
	}
}

// FuzzReport: whatever an agent writes into its row, a report that passes
// Check leads to a decision that can be carried out and printed.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"hostKey":"i-1","assignment":7,"signal":"UD_REG_FAILED","cause":"host","detail":"a\nb"}`))
	f.Add([]byte(`{"assignment":7,"signal":"UD_REMOVE_REG_FAILED","busy":true,"jobs":9,"heartbeatAt":"2026-03-02T12:00:00Z"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var p lifecycle.Report
		if json.Unmarshal(body, &p) != nil || p.Check(now) != nil {
			return
		}
		for _, host := range []string{"created", "claimed", "running", "running, job-scoped", "releasing", "draining", "pooled", "terminated"} {
			facts, policy := scene{host: host, answer: "none"}.facts()
			facts.Report = &p
			d := lifecycle.Decide(facts, now, policy)
			if _, err := lifecycle.Apply(facts.Record, d, now, policy); err != nil {
				t.Errorf("%s: %v", host, err)
			}
			if d.Reason == "" || len(d.Reason) > 400 || strings.ContainsAny(d.Reason, "\n\r\x1b\x00") {
				t.Errorf("%s: not a reason for people: %q", host, d.Reason)
			}
		}
	})
}
