package lifecycle_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/silence"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// now is the moment of every scene; start is when its host was launched.
var (
	now   = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	start = now.Add(-3 * time.Hour)
)

const (
	hostKey    = "i-1"
	token      = "ghs_top_secret_token"
	assignment = 7 // of every scene's record that is not in its first one
)

// scene is one combination of facts, one word per axis. The words are the ones
// printed in testdata/decide.golden.
type scene struct {
	host     string // one of hosts
	cloud    string // unknown, running, impaired, ending, gone
	hold     string // -, held
	busy     string // -, busy
	notice   string // -, interrupted
	beat     string // fresh, silent, unwatched, unheard (and the store was not up either), mass
	deadline string // ahead, reached, overrun (by more than any runtime)
	request  string // unknown, wanted, released, settled
	answer   string // none (no report), seen, a signal, signal:cause; "old " or "newer " before it: of another assignment
}

// axis is one question and its answers, in the order in which they are printed.
type axis struct {
	name   string
	values []string
	field  func(*scene) *string
}

var axes = []axis{
	{"cloud", []string{"unknown", "running", "impaired", "ending", "unshown", "gone"}, func(s *scene) *string { return &s.cloud }},
	{"hold", []string{"-", "held"}, func(s *scene) *string { return &s.hold }},
	{"busy", []string{"-", "busy"}, func(s *scene) *string { return &s.busy }},
	{"notice", []string{"-", "interrupted"}, func(s *scene) *string { return &s.notice }},
	{"answer", answers(), func(s *scene) *string { return &s.answer }},
	{"beat", []string{"fresh", "silent", "unwatched", "unheard", "mass"}, func(s *scene) *string { return &s.beat }},
	{"deadline", []string{"ahead", "reached", "overrun"}, func(s *scene) *string { return &s.deadline }},
	{"request", []string{"unknown", "wanted", "released", "settled"}, func(s *scene) *string { return &s.request }},
}

func answers() []string {
	all := []string{"none", "seen"}
	for _, s := range lifecycle.Signals[1:] {
		if s == lifecycle.SignalRegFailed || s == lifecycle.SignalRemoveRegFailed {
			all = append(all, string(s)+":host", string(s)+":github", string(s)+":aws")
		}
		all = append(all, string(s))
	}
	return append(all, "newer seen", "old seen", "old UD_REG_OK", "old UD_REG_FAILED", "old UD_REMOVE_REG_OK", "old UD_REMOVE_REG_FAILED")
}

// everyScene calls visit with every combination of the axes for one host.
func everyScene(host string, visit func(scene)) {
	s := scene{host: host}
	var walk func(int)
	walk = func(i int) {
		if i == len(axes) {
			visit(s)
			return
		}
		for _, v := range axes[i].values {
			*axes[i].field(&s) = v
			walk(i + 1)
		}
	}
	walk(0)
}

// decided are the answers of Decide to every combination of the axes for one host.
type decided struct {
	answers []lifecycle.Decision // by number, in order of first appearance
	given   []int                // number of the answer to each combination, in the order of everyScene
}

// decidedOf asks Decide once for all tests.
func decidedOf(host string) *decided {
	once, _ := allDecided.LoadOrStore(host, sync.OnceValue(func() *decided {
		d, numbers, last := &decided{}, map[lifecycle.Decision]int{}, -1
		everyScene(host, func(s scene) {
			f, p := s.facts()
			answer := lifecycle.Decide(f, now, p)
			if last < 0 || answer != d.answers[last] {
				var known bool
				if last, known = numbers[answer]; !known {
					last = len(d.answers)
					numbers[answer] = last
					d.answers = append(d.answers, answer)
				}
			}
			d.given = append(d.given, last)
		})
		return d
	}))
	return once.(func() *decided)()
}

// at is the answer to one scene.
func (d *decided) at(s scene) lifecycle.Decision {
	index := 0
	for _, a := range axes {
		index = index*len(a.values) + slices.Index(a.values, *a.field(&s))
	}
	return d.answers[d.given[index]]
}

var allDecided sync.Map // func() *decided by host

func (s scene) String() string {
	words := []string{s.host}
	for _, a := range axes {
		words = append(words, a.name+"="+*a.field(&s))
	}
	return strings.Join(words, " ")
}

// parts splits the answer into what the report says, and by how much its assignment is another than the record's.
func (s scene) parts() (signal lifecycle.Signal, cause lifecycle.Cause, shift int64, known bool) {
	if s.answer == "none" {
		return "", "", 0, false
	}
	text, old := strings.CutPrefix(s.answer, "old ")
	text, newer := strings.CutPrefix(text, "newer ")
	switch {
	case old:
		shift = -1
	case newer:
		shift = 1
	}
	name, c, _ := strings.Cut(text, ":")
	if name == "seen" {
		name = ""
	}
	return lifecycle.Signal(name), lifecycle.Cause(c), shift, true
}

// beginning is what every scene of a host begins with. Scenes copy it, and change
// nothing that it points to.
type beginning struct {
	facts    lifecycle.Facts
	policy   lifecycle.Policy
	requests map[string]*lifecycle.Request // by the word for it
}

// beginnings are those of all hosts, built once: there are a million scenes.
var beginnings = sync.OnceValue(func() map[string]beginning {
	all := make(map[string]beginning, len(hosts))
	for name, build := range hosts {
		b := beginning{
			lifecycle.Facts{Record: baseRecord(), Watch: silence.Watch{StoreUpSince: start, StoreReadableSince: start, ReportsReadAt: now}}, lifecycle.DefaultPolicy(), map[string]*lifecycle.Request{},
		}
		build(&b.facts, &b.policy)
		for _, word := range []string{"unknown", "wanted", "released", "settled", ""} {
			b.requests[word] = scene{request: word}.requestOf(b.facts)
		}
		all[name] = b
	}
	return all
})

// facts builds what Decide is asked, and the policy it is asked under.
func (s scene) facts() (lifecycle.Facts, lifecycle.Policy) {
	b := beginnings()[s.host]
	f, p := b.facts, b.policy
	if f.Record.State != lifecycle.StateTerminated {
		s.setDeadline(&f.Record)
		if s.hold == "held" {
			f.Record.Hold = now.Add(time.Hour)
		}
	}
	f.Report = s.report(f.Record.Assignment, f.Report)
	f.Cloud = machines[s.cloud]
	f.Request = b.requests[s.request]
	switch s.beat {
	case "unwatched":
		f.StoreReadableSince = time.Time{}
	case "unheard":
		f.StoreReadableSince, f.StoreUpSince = time.Time{}, time.Time{}
	case "mass":
		f.MassSilence = true
	}
	return f, p
}

// setDeadline moves the threshold, and what is tied to it, to its side of now.
func (s scene) setDeadline(r *lifecycle.Record) {
	tied := r.Threshold.Equal(r.RuntimeEndsAt)
	switch s.deadline {
	case "reached":
		r.Threshold = now
	case "overrun":
		r.Threshold = now.Add(-7 * time.Hour)
		if r.Pooled() {
			r.PooledAt = r.Threshold
		}
	}
	if r.State == lifecycle.StateCreated || r.Unused() {
		r.CreatedAt = r.Threshold.Add(-10 * time.Minute)
	}
	if tied {
		r.RuntimeEndsAt = r.Threshold
	}
}

func (s scene) report(assignment int64, hint *lifecycle.Report) *lifecycle.Report {
	signal, cause, shift, known := s.parts()
	if !known {
		return nil
	}
	r := lifecycle.Report{HostKey: hostKey, Assignment: assignment + shift, Signal: signal, Cause: cause, Busy: s.busy == "busy"}
	if hint != nil {
		r.Jobs = hint.Jobs
	}
	if r.HeartbeatAt = now.Add(-59 * time.Second); s.beat != "fresh" {
		r.HeartbeatAt = now.Add(-60 * time.Second)
	}
	if s.notice == "interrupted" {
		r.InterruptionAt = now.Add(2 * time.Minute)
	}
	return &r
}

// machines are what the cloud says, by the word for it.
var machines = map[string]*lifecycle.Machine{
	"unknown":  nil,
	"":         {InstanceID: hostKey, State: lifecycle.MachineRunning},
	"running":  {InstanceID: hostKey, State: lifecycle.MachineRunning},
	"impaired": {InstanceID: hostKey, State: lifecycle.MachineRunning, Impaired: true},
	"ending":   {InstanceID: hostKey, State: lifecycle.MachineEnding},
	"unshown":  {InstanceID: hostKey, State: lifecycle.MachineGone},
	"gone":     {InstanceID: hostKey, State: lifecycle.MachineGone, Hardware: lifecycle.Hardware{InstanceType: "m7i.large"}},
}

func (s scene) requestOf(f lifecycle.Facts) *lifecycle.Request {
	q := lifecycle.Request{RunID: "101", RequestID: "q1", Taken: []lifecycle.Taken{{HostKey: hostKey}}}
	if f.Request != nil {
		q.Unattended, q.Outcome, q.Spec = f.Request.Unattended, f.Request.Outcome, f.Request.Spec
	}
	switch s.request {
	case "unknown":
		return nil
	case "released":
		q.ReleasedAt = now.Add(-time.Hour)
	case "settled":
		q.Outcome, q.Taken = lifecycle.OutcomeReady, nil
	}
	return &q
}

func baseRecord() lifecycle.Record {
	return lifecycle.Record{
		HostKey: hostKey, InstanceID: hostKey, Pool: "default", Repository: "acme/web", TrustKey: "acme/web",
		Assignment: assignment, Version: 20, Uses: 3, MaxRuntime: 4 * time.Hour,
		RunnerName: lifecycle.RunnerName(assignment-1, hostKey),
		LaunchedAt: start, CreatedAt: start, UpdatedAt: start, DueAt: now,
	}
}

// golden compares text with a file under testdata, or rewrites it on -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(fmt.Errorf("%w (go test -update writes it)", err))
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs; review, then go test -update (-want +got):\n%s", path, diff)
	}
}

// shown is the hardware of a machine that EC2 shows.
var shown = machines["gone"].Hardware
