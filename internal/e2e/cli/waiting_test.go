package cli_test

import (
	"strings"
	"testing"
)

// TestWaiting: a run that waits is listed with its reason until it has its host, and the history of the fleet has what happened to it.
func TestWaiting(t *testing.T) {
	s := newStage(t)
	if got := s.remuda("waiting"); got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, "Nothing waits for hosts.") {
		t.Errorf("a new fleet: %+v", got)
	}
	s.must("pause", "default")
	asked := s.begin("provision", "acme/shop/41")
	for !strings.Contains(s.must("waiting", "--pool", "default"), "pool_paused") { // until the time of the test is over
	}
	if got := s.must("waiting", "-o", "wide"); !strings.Contains(got, "acme/shop") || !strings.Contains(got, "It gets hosts once the pool is resumed") {
		t.Errorf("while its pool is paused:\n%s", got)
	}
	s.fails(3, "there is no pool \"other\"", "waiting", "--pool", "other")
	s.must("resume", "default")
	asked.interrupt()
	s.must("provision", "acme/shop/42")
	history := s.must("events", "--since", "1h", "--follow=false")
	for _, want := range []string{"  pause  ", "is paused since", "  resume  ", "was resumed by", "launched for run 42"} {
		if !strings.Contains(history, want) {
			t.Errorf("the history lacks %q:\n%s", want, history)
		}
	}
	if got := s.must("events", "--since", "1h", "--until", "30m"); strings.Contains(got, "launched for run 42") {
		t.Errorf("half an hour ago there was:\n%s", got)
	}
	s.fails(2, "--until needs --run, --host or --since", "events", "--until", "1h")
	s.fails(2, "--until: \"noon\" is neither a time", "events", "--since", "1h", "--until", "noon")
	s.fails(2, "--since: 25h0m0s is not within the last 24h", "events", "--since", "25h")
	since := s.must("events", "--since", "24h", "--run", "acme/shop/42", "--follow=false")
	if !strings.Contains(since, "launched for run 42") || strings.Contains(since, "is paused since") {
		t.Errorf("the history of a run in the last day:\n%s", since)
	}
	if got := s.remuda("events", "--since", "1ns", "--run", "acme/shop/42", "--follow=false"); got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, "No such event is known") {
		t.Errorf("the history of a run in the last nanosecond: %+v", got)
	}
	ofPool := s.must("events", "--since", "1h", "--pool", "default", "--follow=false")
	for _, want := range []string{"is paused since", "launched for run 42", "1 of 1 host is ready"} {
		if !strings.Contains(ofPool, want) {
			t.Errorf("the history of the pool lacks %q:\n%s", want, ofPool)
		}
	}
	ofShop := s.must("events", "--since", "1h", "--repository", "acme/shop", "--follow=false")
	if !strings.Contains(ofShop, "launched for run 42") || strings.Contains(ofShop, "is paused since") {
		t.Errorf("the history of a repository:\n%s", ofShop)
	}
	if got := s.remuda("events", "--since", "1h", "--repository", "other", "--follow=false"); got.stdout != "" {
		t.Errorf("the history of another owner: %+v", got)
	}
}

// TestPlanOfTheFleet: controld says what the next scale-down would do with a host, and why.
func TestPlanOfTheFleet(t *testing.T) {
	s := newStageWith(t, "scale_down: {}\n")
	s.must("provision", "acme/shop/41")
	host := s.hosts()[0].ID
	if got := s.must("plan"); !strings.Contains(got, host) || !strings.Contains(got, "keep") || !strings.Contains(got, "scale_down") {
		t.Errorf("of a young host:\n%s", got)
	}
}

// TestPlanWithoutScaleDown: the answer names what the configuration lacks, and what to write there.
func TestPlanWithoutScaleDown(t *testing.T) {
	s := newStage(t)
	s.fails(7, "its configuration has no scale_down section", "plan")
	s.fails(7, "Add `scale_down: {}` to controld's configuration", "plan")
}
