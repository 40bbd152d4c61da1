package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/server"
)

// inService is what a controld of 1.2.3 says of itself, beside one that others names.
func inService(others ...replicas.Replica) func(*server.Options) {
	return func(o *server.Options) {
		o.Replica, o.Replicas = "controld-1", func(context.Context) ([]replicas.Replica, error) {
			return append([]replicas.Replica{{Name: "controld-1", Version: "1.2.3", StartedAt: before(50 * time.Hour)}}, others...), nil
		}
		o.Credentials = func() []server.Credential {
			return []server.Credential{
				{Setting: "grpc.tls.cert_file", Source: "/etc/remuda/credentials/tls.crt", Subject: "CN=controld", ChangedAt: before(time.Hour), ExpiresAt: noon.AddDate(0, 0, 90), Reloaded: true},
				{Setting: "github.apps[0].private_key_file", Source: "/etc/remuda/credentials/app.pem", ChangedAt: before(time.Hour), ReadAt: before(50 * time.Hour)},
			}
		}
	}
}

// TestDoctorOfControld: it says what controld says of itself, and what needs a hand.
func TestDoctorOfControld(t *testing.T) {
	t.Parallel()
	const app = "github.apps[0].private_key_file  warning  /etc/remuda/credentials/app.pem, changed 1h ago, a change counts after a restart: changed since controld has read it: restart controld"
	o, _, _ := aFleet(t)
	for name, tt := range map[string]struct {
		others []replicas.Replica
		want   []string
	}{
		"alone": {nil, []string{
			"replicas                         ok       controld-1 (1.2.3, since 2026-11-25T10:00:00Z)\n",
			"hold                             warning  No host is ended until 2026-11-27T13:00:00Z, by order of CN=ops: a look. `remuda hold --all --off` ends the hold.\n",
			"grpc.tls.cert_file               ok       /etc/remuda/credentials/tls.crt, CN=controld, valid until 2027-02-25 (in 90d), changed 1h ago, a change counts within a minute\n", app,
		}},
		"in an upgrade": {[]replicas.Replica{{Name: "controld-2", Version: "1.3.0", StartedAt: before(time.Minute)}}, []string{
			"replicas                         warning  controld-1 (1.2.3, since 2026-11-25T10:00:00Z), controld-2 (1.3.0, since 2026-11-27T11:59:00Z) are of different versions. During an upgrade",
		}},
		"beside a wrong clock": {[]replicas.Replica{{Name: "controld-2", Version: "1.2.3", ClockOffset: 2 * time.Minute}}, []string{
			"replicas                         ok       controld-1 (1.2.3, since 2026-11-25T10:00:00Z), controld-2 (1.2.3)\n",
			"clocks                           warning  the clock of controld-2 is 2m behind. Set them by NTP",
		}},
	} {
		got := say(t, "doctor", "--address", serveWith(t, o, inService(tt.others...)))
		for _, part := range tt.want {
			if !strings.Contains(got.stdout, part) {
				t.Errorf("%s: it lacks %q:\n%s", name, part, got.stdout)
			}
		}
		if got.code != failure.OK {
			t.Errorf("%s: exit code %d: %s", name, got.code, got.stderr)
		}
	}
	away := func(o *server.Options) {
		o.Replicas = func(context.Context) ([]replicas.Replica, error) { return nil, fmt.Errorf("no store") }
	}
	if got := say(t, "doctor", "--address", serveWith(t, o, away)); got.code != failure.Failed || !strings.Contains(got.stdout, "replicas    failed") {
		t.Errorf("without a store: %+v", got)
	}
}
