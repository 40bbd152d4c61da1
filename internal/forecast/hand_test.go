package forecast_test

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remuda-ci/remuda/internal/forecast"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/replay"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// The hand-checked history: testdata/hand.csv, with a machine for $0.36 an hour, which is a hundredth of a cent a second.
//
// What takes how long: a boot 60 s, a registration 2 s, a clean-up 3 s. A host reads a claim after 0.25 s, and a release after 2.5 s.
// Sweeps look every 5 s, and a request four times a second. So a claim of a clean host takes 0.25 + 2 = 2.25 s, and a launch 60 + 2 = 62 s.
//
//	job  repository  created   runs for
//	1    acme/app    9:00:00   300 s
//	2    acme/app    9:00:00    60 s
//	3    acme/lib    9:02:00   120 s
//	4    acme/app    9:04:00   120 s
//	5    acme/lib    9:08:00    60 s
//	6    acme/app    9:30:00   600 s
const handJobs = 6

// reused.yaml keeps used hosts for 5 minutes for their repository:
//
//	host A, for job 1: launched 9:00:00, ready 9:01:02, job over 9:06:02, clean 9:06:07.5, idle for 5 minutes, ended 9:11:10: 670 s
//	host B, for job 2: launched 9:00:00, ready 9:01:02, job over 9:02:02, clean 9:02:07.5;
//	        for job 4: claimed 9:04:00, ready 9:04:02.25, job over 9:06:02.25, clean 9:06:07.75, ended 9:11:10: 670 s
//	host C, for job 3: launched 9:02:00, ready 9:03:02, job over 9:05:02, clean 9:05:07.5;
//	        for job 5: claimed 9:08:00, ready 9:08:02.25, job over 9:09:02.25, clean 9:09:07.75, ended 9:14:10: 730 s
//	host D, for job 6: launched 9:30:00, ready 9:31:02, job over 9:41:02, which ends the account: 662 s
//
// Together 2732 s. acme/app pays from launch or claim to the end of its jobs: 362 + 122 + 122.25 + 662 = 1268.25 s, and acme/lib
// 182 + 62.25 = 244.25 s. The pool pays the rest: A 308, B 118 + 307.75, C 178 + 307.75, together 1219.5 s.
var reused = forecast.Column{
	Name: forecast.ThisPolicy, Waits: forecast.Waits{P50: 62, P95: 62, P99: 62},
	Warm: 2, Cold: 4, Launched: 4, MachineHours: 2732. / 3600, BusyHours: 1260. / 3600, Dollars: 0.2732,
	// Idle is what comes after the 5.5 s of a clean-up.
	IdleHours: (302.5 + 112.5 + 302.25 + 172.5 + 302.25) / 3600,
}

// fresh-ready.yaml keeps one host ready that no job has used, and uses none again:
//
//	host A: launched 8:45:00, 15 minutes before the first job, for job 1: claimed 9:00:00, ready 9:00:02.25, over 9:05:02.25, ended 9:05:10: 1210 s
//	host B, for job 2, which finds none: launched 9:00:00, ready 9:01:02, over 9:02:02, clean 9:02:07.5, ended 9:02:10: 130 s
//	host C: launched 9:00:00 in the place of A; job 3 claims it 9:02:00, ready 9:02:02.25, over 9:04:02.25, ended 9:04:10: 250 s
//	host D: launched 9:02:00; job 4 claims it 9:04:00, over 9:06:02.25, ended 9:06:10: 250 s
//	host E: launched 9:04:00; job 5 claims it 9:08:00, over 9:09:02.25, ended 9:09:10: 310 s
//	host F: launched 9:08:00; job 6 claims it 9:30:00, over 9:40:02.25, which ends the account: 1922.25 s
//	host G: launched 9:30:00, lives at the end: 602.25 s
//
// Together 4674.5 s. acme/app: 302.25 + 122 + 122.25 + 602.25 = 1148.75 s, acme/lib: 122.25 + 62.25 = 184.5 s, the pool: 3341.25 s.
// A fresh host is clean 65 s after its launch, and idle until its claim: A 835, C 55, D 55, E 175, F 1255, G 537.25.
var freshReady = forecast.Column{
	Name: forecast.PresentOne, Waits: forecast.Waits{P50: 2.25, P95: 62, P99: 62},
	Warm: 5, Cold: 1, Launched: 7, MachineHours: 4674.5 / 3600, BusyHours: 1260. / 3600, Dollars: 0.46745,
	IdleHours: (835 + 55 + 55 + 175 + 1255 + 537.25) / 3600,
}

// A fresh machine for each job: 62 s and the job. acme/app has 4 * 62 + 1080 = 1328 s, and acme/lib 2 * 62 + 180 = 304 s.
var freshMachine = forecast.Column{
	Name: forecast.FreshMachine, Waits: forecast.Waits{P50: 62, P95: 62, P99: 62},
	Cold: 6, Launched: 6, MachineHours: 1632. / 3600, BusyHours: 1260. / 3600, Dollars: 0.1632,
}

// waitsOf are three equal waits.
func waitsOf(seconds float64) forecast.Waits {
	return forecast.Waits{P50: seconds, P95: seconds, P99: seconds}
}

// handRepositories are the shares of the same three policies.
var handRepositories = []forecast.Repository{
	{Name: "acme/app", Jobs: 4, Under: []forecast.Under{
		{Waits: waitsOf(62), MachineHours: 1268.25 / 3600, Dollars: 0.126825},
		{Waits: forecast.Waits{P50: 2.25, P95: 62, P99: 62}, MachineHours: 1148.75 / 3600, Dollars: 0.114875},
		{Waits: waitsOf(62), MachineHours: 1328. / 3600, Dollars: 0.1328},
	}},
	{Name: "acme/lib", Jobs: 2, Under: []forecast.Under{
		{Waits: forecast.Waits{P50: 2.25, P95: 62, P99: 62}, MachineHours: 244.25 / 3600, Dollars: 0.024425},
		{Waits: waitsOf(2.25), MachineHours: 184.5 / 3600, Dollars: 0.01845},
		{Waits: waitsOf(62), MachineHours: 304. / 3600, Dollars: 0.0304},
	}},
	{Under: []forecast.Under{
		{MachineHours: 1219.5 / 3600, Dollars: 0.12195},
		{MachineHours: 3341.25 / 3600, Dollars: 0.334125},
		{},
	}},
}

// exactly compares numbers as a hand computes them: 1269/3600 has no end in binary.
var exactly = cmp.Options{
	cmpopts.IgnoreUnexported(forecast.Report{}),
	cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }),
}

// handAnswer is the answer about the hand-checked history.
func handAnswer(t *testing.T) *forecast.Report {
	t.Helper()
	return handAnswerOf(t, handJobs)
}

// handAnswerOf is the answer for the first so many jobs.
func handAnswerOf(t *testing.T, jobs int) *forecast.Report {
	t.Helper()
	h, err := history.Load("testdata/hand.csv", nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Jobs = h.Jobs[:jobs]
	policy, present := loadPolicy(t, "testdata/reused.yaml"), loadPolicy(t, "testdata/fresh-ready.yaml")
	r, err := forecast.Answer(t.Context(), forecast.Question{History: h, Policy: policy, Present: &present, Times: replay.DefaultTimes()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func loadPolicy(t *testing.T, path string) replay.Policy {
	t.Helper()
	p, err := forecast.LoadPolicy(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAHandCheckedHistory: all that the answer says is what a hand has computed.
func TestAHandCheckedHistory(t *testing.T) {
	racepass.OneGoroutine(t)
	want := &forecast.Report{
		Jobs: handJobs, From: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC), Until: time.Date(2026, 11, 2, 9, 40, 10, 0, time.UTC), BootSeconds: 60,
		Recorded: forecast.Waits{P50: 10, P95: 30, P99: 30},
		Columns:  []forecast.Column{reused, freshReady, freshMachine}, Repositories: handRepositories,
	}
	if diff := cmp.Diff(want, handAnswer(t), exactly); diff != "" {
		t.Errorf("(-by hand +answered):\n%s", diff)
	}
}

// TestTheAxisOfAPicture has round numbers, also where there is one machine at most.
func TestTheAxisOfAPicture(t *testing.T) {
	racepass.OneGoroutine(t)
	h := handAnswerOf(t, 1)
	var b strings.Builder
	if err := h.Picture(&b); err != nil {
		t.Fatal(err)
	}
	var axis []string
	for _, m := range regexp.MustCompile(`text-anchor="end">([0-9.]+)</text>`).FindAllStringSubmatch(b.String(), 7) {
		axis = append(axis, m[1])
	}
	if got := strings.Join(axis, " "); got != "0 0.2 0.4 0.6 0.8 1 1.2" {
		t.Errorf("the axis has %s", got)
	}
}

// TestTheTable has the same numbers, and JSON is the report.
func TestTheTable(t *testing.T) {
	racepass.OneGoroutine(t)
	r := handAnswer(t)
	var b strings.Builder
	if err := r.Table(&b, true); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"6 jobs of 2 repositories, created from 2026-11-02 09:00 UTC on, the last over at 2026-11-02 09:40 UTC. A boot takes 1m0s.",
		"ALL JOBS POLICY PRESENT MACHINE PER JOB RECORDED",
		"half of them waited at most 1m2s 2.3s 1m2s 10s",
		"had a warm one 2 5 0", "had a cold one, launched 4 1 6", "dollars 0.27 0.47 0.16",
		"acme/lib 2 2.3s 1m2s 1m2s 0.02 2.3s 2.3s 2.3s 0.02 1m2s 1m2s 1m2s 0.03",
		"the pools, waiting 0.12 0.33 0.00",
	} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), line) {
			t.Errorf("no line %q in\n%s", line, &b)
		}
	}
	text, err := json.Marshal(r)
	var back forecast.Report
	if err != nil || json.Unmarshal(text, &back) != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if diff := cmp.Diff(r, &back, exactly); diff != "" {
		t.Errorf("JSON (-report +read again):\n%s", diff)
	}
}
