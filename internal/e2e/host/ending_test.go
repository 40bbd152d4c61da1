//go:build testhost

package host_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/awstest"
)

// refuseEnds lets EC2 refuse that hosts end themselves, so that they have to
// power themselves off.
func refuseEnds(a *account) {
	a.hosts.Handle("ec2", "TerminateInstances", func(w http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
		awstest.Fail(w, r, http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation.")
	})
}

// TestHostsWithoutControl: no controld knows these instances, and each ends itself:
// the machine goes down, and with it the instance.
func TestHostsWithoutControl(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spoil func(s *system)
		says  string // the journal
		who   string // says it
		shown string // in the page, if it is
	}{
		"no record within the boot timeout": {
			func(s *system) { s.configureAgent(t, "boot_timeout: 3s\n") }, "no record of this host for", "agentd", "end-no-record",
		},
		"the start limit is hit": {
			func(s *system) {
				s.write(t, "usr/bin/agentd", "#!/bin/sh\necho broken\nexit 1\n", 0o755)
				// Else the delays grow where systemd can do that, and ten starts take 170 s.
				s.write(t, "etc/systemd/system/agentd.service.d/steady.conf", "[Service]\nRestartSteps=0\n", 0o644)
			}, "agentd has failed; powering the host off",
			"remuda-power-off", "end-broken",
		},
		"the configuration can never work": {
			func(s *system) { s.configureAgent(t, "unheard_of: yes\n") }, "agentd has failed; powering the host off",
			"remuda-power-off", "",
		},
	}
	w, shown := newWorld(t), newShown(true)
	t.Cleanup(func() { shown.compare(t) })
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, w)
			refuseEnds(a)
			id := a.launch()
			hosts := startMachines(t, a, w, func(_ types.Instance, s *system) { tt.spoil(s) })
			i := hosts.up(t, id)
			i.goesDown(within)
			eventually(t, within, "the instance is terminated", func() bool { return a.state(id) == types.InstanceStateNameTerminated })
			log := i.words(tt.who)
			if !strings.Contains(log, tt.says) {
				t.Errorf("%q is not in the journal of %s:\n%s", tt.says, tt.who, log)
			}
			if !strings.Contains(i.console.String(), tt.says) { // all that is left of a host
				t.Errorf("%q is not on the console:\n%s", tt.says, i.console.String())
			}
			if tt.shown != "" {
				shown.see(tt.shown, log)
			}
		})
	}
}

// TestHostsThatLoseControl: controld dies, and the hosts that it leaves end themselves.
func TestHostsThatLoseControl(t *testing.T) {
	t.Parallel()
	t.Run("the store is unreachable past the threshold", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, nil)
		refuseEnds(s.account)
		i := s.provision("301", "fleeting")
		s.release("301")
		s.killControld()
		s.account.hosts.Inject(awstest.Fault{Service: "dynamodb", Kind: awstest.LostBeforeSend})
		i.says("store unreachable since")
		i.goesDown(2 * within)
		if log := i.lastJournal(); !strings.Contains(log, "its threshold of") {
			t.Error("the journal does not say why")
		}
	})
	t.Run("the pre-runner script has failed", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, nil)
		refuseEnds(s.account)
		go s.tryToProvision("302", "broken") // it waits for a host until controld is gone
		var id string
		eventually(t, within, "an instance runs", func() bool {
			all, err := s.account.instances(s.ctx)
			check(t, err)
			if len(all) > 0 {
				id = *all[0].InstanceId
			}
			return id != ""
		})
		i := s.machines.up(t, id)
		eventually(t, within, "the script has run", func() bool {
			return strings.Contains(i.lastJournal(), "no such registry mirror")
		})
		s.killControld()
		i.goesDown(2 * within)
		if log := i.lastJournal(); !strings.Contains(log, "pre-runner script failed") {
			t.Error("the journal does not say why")
		}
	})
}

// configureAgent adds to the configuration of the package.
func (s *system) configureAgent(t testing.TB, lines string) {
	t.Helper()
	const at = "etc/remuda/agentd.yaml"
	text, err := os.ReadFile(filepath.Join(s.root, at))
	check(t, err)
	s.write(t, at, string(text)+lines, 0o644)
}
