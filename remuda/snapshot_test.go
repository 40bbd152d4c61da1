package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/cli"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/snapshot"
)

// said is what a command printed, and its exit code.
type said struct {
	code           failure.Code
	stdout, stderr string
}

// say runs a command, at noon.
func say(t *testing.T, args ...string) said {
	t.Helper()
	var stdout, stderr bytes.Buffer
	app := &cli.App{
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" },
		Now: func() time.Time { return noon }, ReadSnapshot: readSnapshot, Globals: cli.Globals{Output: output.Table},
	}
	code := run(t.Context(), app, args)
	return said{code, stdout.String(), stderr.String()}
}

// serve is the address of a server of the fleet whose clock stands.
func serve(t *testing.T, o fleet.Options) string {
	t.Helper()
	return serveWith(t, o, func(*server.Options) {})
}

func serveWith(t *testing.T, o fleet.Options, change func(*server.Options)) string {
	t.Helper()
	f, err := fleet.New(o)
	check(t, err)
	options := server.Options{Fleet: f, Now: func() time.Time { return noon }}
	change(&options)
	s, err := server.New(options)
	check(t, err)
	return listens(t, s)
}

// listens is the address of a server, which stops after the test.
func listens(t *testing.T, s *server.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop(context.Background())
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// take is a file with a snapshot of the fleet, and what was said of it.
func take(t *testing.T, of snapshot.Source) (path string, notes []string) {
	t.Helper()
	s, notes, err := snapshot.Take(t.Context(), of, noon)
	check(t, err)
	var text bytes.Buffer
	check(t, snapshot.Write(&text, s))
	path = filepath.Join(t.TempDir(), "fleet.json")
	check(t, os.WriteFile(path, text.Bytes(), 0o600))
	return path, notes
}

// TestSnapshotAnswersAsControld: each command that looks prints for a snapshot what it prints for the fleet that it was taken of.
func TestSnapshotAnswersAsControld(t *testing.T) {
	t.Parallel()
	o, _, _ := aFleet(t)
	address := serve(t, o)
	file, notes := take(t, snapshot.Source{Options: o})
	for _, note := range notes {
		if !strings.HasPrefix(note, "i-") { // of the plan
			t.Errorf("left out: %s", note)
		}
	}
	for _, command := range []string{
		"ps", "ps --all", "ps --pool jobs", "ps --repository acme --state held", "runs", "pools", "services", "waiting", "waiting --pool jobs", "plan", "plan --at 02:00", "plan --at 2026-11-30T09:30:00+01:00",
		"cost", "cost --by run --since 5d", "cost --by day --since 25d", "cost --by workflow --run acme/shop/12", "cost --by job --since 5d", "cost --csv", "budgets",
		"why acme/shop/41", "why acme/shop/40", "why acme/shop/39", "why acme/shop/50", "why 41", "why turn:jobs:1", "why acme/shop/99",
		"why i-created", "why i-busy", "why i-quiet", "why i-held", "why i-orphan", "why i-interrupted", "why i-pooled", "why i-hot", "why i-fresh", "why i-job",
		"why i-ending", "why i-ended",
		"why https://github.com/acme/shop/actions/runs/50/job/7", "why https://github.com/acme/shop/actions/runs/50/job/8", "why https://github.com/acme/shop/actions/runs/50/job/9",
		"events --since 1h --follow=false", "events --since 1h --pool jobs --follow=false", "events --run acme/shop/40 --follow=false", "events --host i-busy --follow=false",
	} {
		for _, format := range []string{"table", "wide", "json", "yaml"} {
			args := append(strings.Fields(command), "--output", format)
			want, got := say(t, append(args, "--address", address)...), say(t, append(args, "--snapshot", file)...)
			if (want.code != failure.OK) != (command == "why acme/shop/99") || want.code == failure.OK && want.stdout == "" && command != "services" {
				t.Errorf("%v: controld says %+v", args, want)
			}
			if diff := cmp.Diff(want.stdout, got.stdout); diff != "" || want.code != got.code {
				t.Errorf("%v: exit codes %d and %d (-controld +snapshot):\n%s%s", args, want.code, got.code, diff, got.stderr)
			}
		}
	}
}

// TestWhyTakesEachIDThatIsShown: by tables, events and explanations.
func TestWhyTakesEachIDThatIsShown(t *testing.T) {
	t.Parallel()
	o, _, _ := aFleet(t)
	file, _ := take(t, snapshot.Source{Options: o})
	for id, want := range map[string]string{
		"40":                    "Request request-40 of attempt 1 asked for",
		"request-40":            "Request request-40 of attempt 1 asked for", // of a host
		"39":                    "Request request-39 of attempt 1 asked for", // it waits
		"request-39":            "Request request-39 of attempt 1 asked for",
		"50":                    `Job 7 "test (7)" runs on remuda-1-i-job`, // its jobs wait
		"7":                     `Job 7 "test (7)" is of run 50`,           // a host runs it
		"8":                     `Job 8 "test (8)" is of run 50`,           // it waits
		"remuda-1-i-busy":       "Host i-busy (",
		"turn:jobs:1":           "Host i-job (",
		"acme/shop/turn:jobs:1": "Host i-job (",
		"acme/shop turn:jobs:1": "Host i-job (",
		"spare:jobs:9":          "Host i-ended (", // only the history has it
		"warm:default":          "Host i-fresh (",
		"https://github.com/acme/shop/actions/runs/50/job/7": `Job 7 "test (7)" is of run 50`,
	} {
		got := say(t, append(append([]string{"why"}, strings.Fields(id)...), "--snapshot", file)...)
		if got.code != failure.OK || !strings.Contains(got.stdout, want) {
			t.Errorf("why %s: %d, %q, want %q\n%s", id, got.code, got.stdout, want, got.stderr)
		}
	}
	for id, want := range map[string]string{
		"98": "`remuda why owner/name/98`", "turn:jobs:98": "no host, request or job has this id", "acme/other/turn:jobs:1": "no host, request or job has this id",
	} {
		if got := say(t, "why", id, "--snapshot", file); got.code != failure.NotFound || !strings.Contains(got.stderr, want) {
			t.Errorf("why %s: %+v, want %q", id, got, want)
		}
	}
	got := say(t, "why", "https://github.com/acme/tools/actions/runs/43/job/7", "--snapshot", file)
	if want := "job 7 is of run 50 of acme/shop, and not of run 43 of acme/tools"; got.code != failure.Usage || !strings.Contains(got.stderr, want) {
		t.Errorf("a job of another run: %+v, want %q", got, want)
	}
}

// TestWhyOfAJobThatGetsNoHost: by its id alone and by its URL it is about that job, and not about its run. Of a job that is not known by itself its run is
// explained, and the answer says so.
func TestWhyOfAJobThatGetsNoHost(t *testing.T) {
	t.Parallel()
	o, _, _ := aFleet(t)
	for id, name := range map[int64]string{78: "build", 79: "lint"} {
		check(t, o.Store.AddEvents(t.Context(), []lifecycle.Event{{
			At: time.Now(), Repository: "acme/shop", RunID: "61", Action: lifecycle.ActionRefuseJob, Code: lifecycle.ReasonLabelUnknown,
			Reason: fmt.Sprintf("job %d gets no host: no pool has the label %q", id, name), JobID: id, JobName: name, Since: time.Now(),
		}}))
	}
	address := serve(t, o)
	for _, of := range []string{"78", "https://github.com/acme/shop/actions/runs/61/job/78"} {
		got := say(t, "why", of, "--address", address)
		const want = `Job 78 "build" gets no host: no pool has the label "build". Nothing happens until the workflow or the configuration changes`
		if got.code != failure.OK || !strings.HasPrefix(got.stdout, want) || strings.Contains(got.stdout, "79") {
			t.Errorf("why %s: %+v, want %q", of, got, want)
		}
	}
	got := say(t, "why", "https://github.com/acme/shop/actions/runs/61/job/80", "--address", address)
	if got.code != failure.OK || !strings.HasPrefix(got.stdout, "Job 80 is not known by itself. This is about its run:\n") || !strings.Contains(got.stdout, `Job 79 "lint" gets no host`) {
		t.Errorf("an unknown job: %+v", got)
	}
}

// A fleet without scale-down, webhooks and prices has fewer answers, and so has its snapshot.
func TestSnapshotOfASmallFleet(t *testing.T) {
	t.Parallel()
	o, _, hub := aFleet(t)
	o.ScaleDown, o.Jobs, o.Prices, o.Budgets = nil, nil, nil, nil
	address := serve(t, o)
	o.ScaleDown = &fleet.ScaleDown{GitHub: hub, PlanOnly: true}
	file, _ := take(t, snapshot.Source{Options: o})
	for _, command := range []string{"ps", "pools", "waiting", "budgets", "cost", "why i-quiet", "why i-job", "why acme/shop/40", "why https://github.com/acme/shop/actions/runs/50/job/7"} {
		args := append(strings.Fields(command), "--output", "json")
		want, got := say(t, append(args, "--address", address)...), say(t, append(args, "--snapshot", file)...)
		if want.code != got.code || want.stdout != got.stdout {
			t.Errorf("%v: controld says %+v, and the snapshot %+v", args, want, got)
		}
	}
	if got := say(t, "plan", "--snapshot", file); got.code != failure.OK || got.stdout == "" {
		t.Errorf("plan: %+v", got)
	}
}

// TestSnapshotThatIsCut: the file is bounded, what matters most is in it, and each command says what is not.
func TestSnapshotThatIsCut(t *testing.T) {
	t.Parallel()
	o, _, _ := aFleet(t)
	file, _ := take(t, snapshot.Source{Options: o, MostBytes: 12_000})
	got := say(t, "ps", "--snapshot", file)
	if strings.Count(got.stdout, "\n") != 11 || !strings.Contains(got.stderr, "Some rows are left out, since the snapshot would be too large: calls_of_day, day, event, instance, job_time, ") {
		t.Errorf("ps: %+v", got)
	}
}

// TestSnapshotOfTheExamples: a new user can try each command that looks with it.
func TestSnapshotOfTheExamples(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"ps": "running,held", "runs": "acme/shop", "pools": "nightly", "waiting": "pool_paused", "why acme/shop/44": "pool nightly is paused", "why acme/tools/43": "at work",
		"cost": "acme/tools", "budgets": "within", "plan": "its agent says that it runs a job", "events": "acme/docs", "top": "6 hosts, 4 busy",
	} {
		got := say(t, append(strings.Fields(command), "--snapshot", "../examples/snapshot.json")...)
		if got.code != failure.OK || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

// TestSnapshotHasNoSecrets: neither tokens nor the labels of standby runners, which cannot be guessed.
func TestSnapshotHasNoSecrets(t *testing.T) {
	t.Parallel()
	o, _, _ := aFleet(t)
	file, _ := take(t, snapshot.Source{Options: o})
	text, err := os.ReadFile(file)
	check(t, err)
	if bytes.Contains(text, []byte(secret)) || bytes.Count(text, []byte(`"removed"`)) != 2 {
		t.Errorf("the snapshot has secrets:\n%s", text)
	}
}

// What a snapshot does not have is said, and not shown as empty.
func TestSnapshotSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	o, cloud, hub := aFleet(t)
	cloud.err, hub.err = errors.New("EC2 is away"), errors.New("GitHub is away")
	o.Prices, o.Budgets = nil, nil
	file, notes := take(t, snapshot.Source{Options: o, Services: []string{"render"}})
	if all := strings.Join(notes, "\n"); !strings.Contains(all, "the runners of acme/shop: GitHub is away") || !strings.Contains(all, "what the cloud says of the machines: EC2 is away") {
		t.Errorf("said when it was taken:\n%s", all)
	}
	for command, want := range map[string]said{
		"why i-busy": {0, "GitHub could not be asked about runner remuda-1-i-busy: the snapshot has no answer of GitHub about it.", "as it was at 2026-11-27T12:00:00Z"},
		"why i-held": {0, "EC2 could not be asked about its machine: describe 1 machine: the snapshot has no answer about it.", ""},
		"cost":       {1, "", "it has no prices"},
		"services":   {1, "", "a snapshot has no state of services, and this fleet has render; ask its controld"},
		"why https://github.com/acme/shop/actions/runs/51/job/1": {3, "", "A snapshot has no jobs that are over"},
	} {
		got := say(t, append(strings.Fields(command), "--snapshot", file)...)
		if got.code != want.code || !strings.Contains(got.stdout, want.stdout) || !strings.Contains(got.stderr, want.stderr) || strings.Contains(got.stderr, "older than this remuda") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

// TestSnapshotShowsAPicture: top shows it once, and events shows what happened.
func TestSnapshotShowsAPicture(t *testing.T) {
	t.Parallel()
	o, _, _ := aFleet(t)
	file, _ := take(t, snapshot.Source{Options: o})
	if got := say(t, "top", "--snapshot", file); got.code != 0 || !strings.HasPrefix(got.stdout, "10 hosts, 1 busy, ") || strings.Count(got.stdout, "\n") != 12 {
		t.Errorf("top: %+v", got)
	}
	whole := say(t, "events", "--since", "24h", "--snapshot", file)
	if got := say(t, "events", "--since", "24h", "--until", "2099-01-01T00:00:00Z", "--snapshot", file); got.stdout != whole.stdout || got.code != 0 {
		t.Errorf("until a time that has not come: %+v, want %+v", got, whole)
	}
	some := say(t, "events", "--since", "24h", "--until", "10m", "--snapshot", file)
	if n := strings.Count(some.stdout, "\n"); some.code != 0 || n == 0 || n >= strings.Count(whole.stdout, "\n") {
		t.Errorf("until ten minutes ago: %+v", some)
	}
	if got := say(t, "events", "--since", "24h", "--snapshot", file, "--until", "24h"); got.code != 0 || got.stdout != "" {
		t.Errorf("until the history begins: %d, %s", got.code, got.stdout)
	}
	if got := say(t, "events", "--snapshot", file); got.code != 0 || strings.Count(got.stdout, "\n") != 15 {
		t.Errorf("events: %+v", got)
	}
}

// A file of an older controld has only what a scale-down decides by.
func TestSnapshotOfAnOlderControld(t *testing.T) {
	t.Parallel()
	const file = "../internal/policy/testdata/plan/a-day-of-many-owners.json"
	if got := say(t, "plan", "--snapshot", file); got.code != 0 || !strings.Contains(got.stdout, "i-a2  mark idle      scale_down  idle for the first time") {
		t.Errorf("plan: %+v", got)
	}
	for _, command := range []string{"ps", "runs", "pools", "services", "waiting", "cost", "budgets", "why acme/shop/1", "events", "top"} {
		got := say(t, append(strings.Fields(command), "--snapshot", file)...)
		if got.code != failure.Failed || got.stdout != "" && command != "events" || !strings.Contains(got.stderr, "`controld snapshot` of this version writes the whole fleet") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

// TestSnapshotIsRefused where it means nothing, and where the file is none.
func TestSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "fleet.json")
		check(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const example = "../examples/snapshot.json"
	newer := file(`{"format": 3, "now": "2026-11-27T12:00:00Z"}`)
	damaged := file(`{"format": 2, "now": "2026-11-27T12:00:00Z", "fleet": {"settings": {"pools": [{"name": "default"}]}, "rows": {"instance": [{"hostKey": 7}]}}}`)
	for command, want := range map[string]said{
		"provision acme/shop/1":                {2, "", "provision changes a fleet, and --snapshot names a file; leave --snapshot out to call controld"},
		"release acme/shop/1":                  {2, "", "release changes a fleet"},
		"hold --all":                           {2, "", "hold changes a fleet"},
		"drain --all":                          {2, "", "drain changes a fleet"},
		"pause default":                        {2, "", "pause changes a fleet"},
		"resume default":                       {2, "", "resume changes a fleet"},
		"terminate i-1 --reason x":             {2, "", "terminate changes a fleet"},
		"refresh":                              {2, "", "refresh changes a fleet"},
		"doctor":                               {2, "", "doctor does not read a fleet"},
		"context list":                         {2, "", "context does not read a fleet"},
		"login x":                              {2, "", "login does not read a fleet"},
		"ps --watch":                           {2, "", "--watch: a snapshot does not change"},
		"ps --address 127.0.0.1:1":             {2, "", "--snapshot asks no controld"},
		"top --output json":                    {2, "", "top is for people"},
		"ps --snapshot " + filepath.Dir(newer): {1, "", "is a directory; name a file in it"},
		"ps --snapshot " + newer + ".no":       {1, "", "no such file or directory"},
		"ps --snapshot " + newer:               {1, "", "a newer controld wrote this snapshot, in format 3, and formats up to 2 are read here"},
		"ps --snapshot " + file(`{"now": "2026-11-2`):          {1, "", "line 1, column 19: it ends too early"},
		"ps --snapshot " + damaged:                             {1, "", "rows.instance[0]: json: cannot unmarshal number into Go struct field Record.hostKey of type string; the file is damaged: write it again"},
		"ps --snapshot " + file(strings.Repeat(" ", 64<<20+1)): {1, "", "a snapshot may have 67108864 bytes, and this one has more"},
	} {
		args := strings.Fields(command)
		if !strings.Contains(command, "--snapshot") {
			args = append(args, "--snapshot", example)
		}
		got := say(t, args...)
		if got.code != want.code || got.stdout != "" || !strings.Contains(got.stderr, want.stderr) {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

// TestWhyOfAJobThatIsOver: neither a host, what waits nor the history has its id, but its row.
func TestWhyOfAJobThatIsOver(t *testing.T) {
	t.Parallel()
	o, _, _ := aFleet(t)
	over := lifecycle.Job{
		ID: 77, Name: "build", RunID: "60", RunAttempt: 1, Repository: "acme/shop", Scope: "acme/shop", State: lifecycle.JobDone, Conclusion: "success",
		EndedAt: time.Now(), DueAt: time.Now().Add(time.Hour), ExpiresAt: time.Now().Add(time.Hour), Version: 1,
	}
	if err := o.Store.(fleet.JobStore).CreateJob(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	got := say(t, "why", "77", "--address", serve(t, o))
	if got.code != failure.OK || !strings.Contains(got.stdout, `Job 77 "build" is over since`) {
		t.Errorf("%+v", got)
	}
}
