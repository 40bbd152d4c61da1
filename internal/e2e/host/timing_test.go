//go:build testhost

package host_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// bar is what the agent itself may add to a boot.
	bar = 300 * time.Millisecond
	// boots are measured, and the quickest counts: others work on this machine
	// too, but nothing makes an agent faster than it is. Where none of the first is quick enough, more are.
	boots, mostBoots = 3, 8
)

// TestTimeThatTheAgentAdds measures from agentd's start to the listener's, with
// the assignment there already. Registration itself is config.sh's time.
func TestTimeThatTheAgentAdds(t *testing.T) {
	s := newStage(t, nil)
	least := time.Hour
	for n := 0; n < boots || least > bar && n < mostBoots; n++ {
		i := s.provision(strconv.Itoa(501+n), "default")
		all := i.monotonic()
		agent, listener := all.at(t, "agentd.service", "Starting "), all.at(t, firstRunner, "Started ") // after its check
		begun, ended := all.at(t, "remuda-register-1.service", "Starting ", "Started "), all.last(t, "remuda-register-1.service")
		own := listener - agent - (ended - begun)
		t.Logf("agentd's start to registration %v, config.sh %v, from there to the listener's start %v: %v of the agent's own",
			(begun - agent).Round(time.Millisecond), (ended - begun).Round(time.Millisecond),
			(listener - ended).Round(time.Millisecond), own.Round(time.Millisecond))
		least = min(least, own)
	}
	t.Logf("the agent adds %v, of at most %v", least.Round(time.Millisecond), bar)
	if least > bar {
		t.Errorf("the agent adds %v between its start and the listener's, more than %v", least, bar)
	}
}

// entry is what systemd said of a unit, in time since boot.
type entry struct {
	unit, message string
	at            time.Duration
}

type entries []entry

// monotonic is what systemd said of its units in this boot.
func (m *machine) monotonic() entries {
	m.t.Helper()
	out := m.exec("journalctl", "--no-pager", "--output=json", "_PID=1")
	var all entries
	for line := range strings.Lines(out) {
		var e struct {
			Unit    string `json:"UNIT"`
			Message any    `json:"MESSAGE"` // bytes if it is no text
			At      string `json:"_SOURCE_MONOTONIC_TIMESTAMP"`
			Heard   string `json:"__MONOTONIC_TIMESTAMP"`
		}
		check(m.t, json.Unmarshal([]byte(line), &e))
		text, _ := e.Message.(string)
		at := e.At
		if at == "" {
			at = e.Heard
		}
		us, err := strconv.ParseInt(at, 10, 64)
		check(m.t, err)
		all = append(all, entry{e.Unit, text, time.Duration(us) * time.Microsecond})
	}
	return all
}

// at is when the first such message came.
func (all entries) at(t testing.TB, unit string, beginnings ...string) time.Duration {
	t.Helper()
	for _, e := range all {
		for _, b := range beginnings {
			if e.unit == unit && strings.HasPrefix(e.message, b) {
				return e.at
			}
		}
	}
	t.Fatalf("systemd did not say %q of %s", beginnings, unit)
	return 0
}

// last is when the last message came.
func (all entries) last(t testing.TB, unit string) (at time.Duration) {
	t.Helper()
	for _, e := range all {
		if e.unit == unit {
			at = e.at
		}
	}
	if at == 0 {
		t.Fatalf("systemd said nothing of %s", unit)
	}
	return at
}
