package hint_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/queue/hint"
)

func TestParseMessage(t *testing.T) {
	full := lifecycle.Message{
		InstanceID: "i-123456", ResourceClass: "large", InstanceType: "c6i.large", CPU: 2, MemoryMiB: 4096, UsageClass: "on-demand",
		HostKey: "AROA:i-123456", Pool: "default", Assignment: 4, Threshold: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), TrustKey: "acme/web",
	}
	tests := []struct {
		name, body string
		want       lifecycle.Message
		wantErr    string
	}{
		{
			"the whole message",
			`{"id":"i-123456","resourceClass":"large","instanceType":"c6i.large","cpu":2,"mmem":4096,"usageClass":"on-demand",
			"hostKey":"AROA:i-123456","pool":"default","assignment":4,"threshold":"2026-01-01T12:00:00Z","trustKey":"acme/web"}`,
			full, "",
		},
		{"only the id", `{"id":"i-1"}`, lifecycle.Message{InstanceID: "i-1", HostKey: "i-1"}, ""},
		{"instanceId for id", `{"instanceId":"i-1"}`, lifecycle.Message{InstanceID: "i-1", HostKey: "i-1"}, ""},
		{"id before instanceId", `{"instanceId":"i-2","id":"i-1"}`, lifecycle.Message{InstanceID: "i-1", HostKey: "i-1"}, ""},
		{"host key of its own", `{"id":"i-1","hostKey":"AROA:i-1"}`, lifecycle.Message{InstanceID: "i-1", HostKey: "AROA:i-1"}, ""},
		{"fields of others", `{"id":"i-1","colour":"bay"}`, lifecycle.Message{InstanceID: "i-1", HostKey: "i-1"}, ""},
		{"no id", `{"cpu":2}`, lifecycle.Message{}, "id is missing"},
		{"null", `null`, lifecycle.Message{}, "id is missing"},
		{"negative assignment", `{"id":"i-1","assignment":-1}`, lifecycle.Message{}, "assignment is negative"},
		{"negative cpu", `{"id":"i-1","cpu":-1}`, lifecycle.Message{}, "cpu or mmem is negative"},
		{"negative memory", `{"id":"i-1","mmem":-1}`, lifecycle.Message{}, "cpu or mmem is negative"},
		{"empty", ``, lifecycle.Message{}, "parse queue message"},
		{"cut off", `{"id":"i-1"`, lifecycle.Message{}, "parse queue message"},
		{"two messages", `{"id":"i-1"}{"id":"i-2"}`, lifecycle.Message{}, "parse queue message"},
		{"a list", `[{"id":"i-1"}]`, lifecycle.Message{}, "parse queue message"},
		{"a number for an id", `{"id":1}`, lifecycle.Message{}, "parse queue message"},
		{"not a time", `{"id":"i-1","threshold":"noon"}`, lifecycle.Message{}, "parse queue message"},
		{"too long", `{"id":"` + strings.Repeat("i", 8<<10) + `"}`, lifecycle.Message{}, "8201 bytes, at most 8192 allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := hint.ParseMessage([]byte(tt.body))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || !strings.HasPrefix(err.Error(), "parse queue message") {
					t.Errorf("ParseMessage: %v, want %q", err, tt.wantErr)
				}
				if got != (lifecycle.Message{}) {
					t.Errorf("ParseMessage: an error and a message: %+v", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecordMessageRoundTrip(t *testing.T) {
	const hostKey = "i-0123456789abcdef0"
	r := lifecycle.Record{
		HostKey: hostKey, InstanceID: hostKey, Pool: "default", State: lifecycle.StateIdle, Assignment: 3,
		PooledAt: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), Threshold: time.Date(2026, 3, 2, 12, 5, 0, 0, time.UTC), TrustKey: "acme/web",
		Hardware: lifecycle.Hardware{ResourceClass: "large", UsageClass: lifecycle.UsageSpot, InstanceType: "c6i.large", CPU: 2, MemoryMiB: 4096},
	}
	body, err := json.Marshal(r.Message())
	if err != nil {
		t.Fatal(err)
	}
	got, err := hint.ParseMessage(body)
	if err != nil {
		t.Fatal(err)
	}
	want := lifecycle.Message{
		InstanceID: hostKey, ResourceClass: "large", InstanceType: "c6i.large", CPU: 2, MemoryMiB: 4096, UsageClass: "spot",
		HostKey: hostKey, Pool: "default", Assignment: 3, Threshold: r.Threshold, TrustKey: "acme/web",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzParseMessage: no body makes the parser panic, and one that it takes is
// complete, and the same after a round trip.
func FuzzParseMessage(f *testing.F) {
	f.Add([]byte(`{"id":"i-1","cpu":2,"mmem":4096,"usageClass":"spot","assignment":3,"threshold":"2026-01-01T12:00:00Z"}`))
	f.Add([]byte(`{"instanceId":"i-1","ID":null,"assignment":9223372036854775807}`))
	f.Add([]byte(`{"id":"\ud800"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := hint.ParseMessage(body)
		if err != nil {
			return
		}
		if m.InstanceID == "" || m.HostKey == "" || m.Assignment < 0 || m.CPU < 0 || m.MemoryMiB < 0 {
			t.Fatalf("taken, and not complete: %+v", m)
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("taken, and cannot be written: %v", err)
		}
		if len(again) > 8<<10 {
			return // escaping made it longer than a message may be
		}
		back, err := hint.ParseMessage(again)
		if err != nil {
			t.Fatal(err)
		}
		if !m.Threshold.Equal(back.Threshold) {
			t.Fatalf("threshold %s came back as %s", m.Threshold, back.Threshold)
		}
		m.Threshold, back.Threshold = time.Time{}, time.Time{}
		if m != back {
			t.Fatalf("%+v came back as %+v", m, back)
		}
	})
}
