package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/cli"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/history/fromgithub"
)

const (
	handHistory = "../internal/forecast/testdata/hand.csv"
	handPolicy  = "../internal/forecast/testdata/reused.yaml"
	dayHistory  = "../examples/history/working-day.csv"
)

// TestAPlanOfAHistory as a table and for programs. Its numbers are checked in internal/forecast.
func TestAPlanOfAHistory(t *testing.T) {
	t.Parallel()
	got := say(t, "plan", "--history", handHistory, "--policy", handPolicy)
	if got.code != failure.OK || !strings.Contains(got.stdout, "6 jobs of 2 repositories") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	got = say(t, "plan", "--history", handHistory, "--policy", handPolicy, "--boot", "2m", "--output", "json")
	var report struct {
		Jobs     int
		Policies []struct {
			Name    string
			Waits   struct{ P99Seconds float64 }
			Dollars float64
		}
	}
	picture := filepath.Join(t.TempDir(), "plan.svg")
	if got := say(t, "plan", "--history", handHistory, "--picture", picture); got.code != failure.OK {
		t.Errorf("%+v", got)
	}
	if drawn, err := os.ReadFile(picture); err != nil || !strings.HasPrefix(string(drawn), "<svg ") {
		t.Errorf("%v: %.40q", err, drawn)
	}
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || report.Jobs != 6 || len(report.Policies) != 2 || report.Policies[1].Waits.P99Seconds != 122 {
		t.Errorf("%v: %+v", err, got)
	}
}

// TestAPlanOfNothing and other mistakes on the command line.
func TestAPlanOfNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		code failure.Code
		says string
	}{
		{[]string{"--policy", handPolicy}, failure.Usage, "--policy is about recorded jobs; write --history or --from-github too"},
		{[]string{"--history", handHistory, "--at", "02:00"}, failure.Usage, "--at is about a fleet, and --history about recorded jobs"},
		{[]string{"--history", handHistory, "--watch"}, failure.Usage, "--watch is about a fleet"},
		{[]string{"--history", handHistory, "--from-github", "acme"}, failure.Usage, "--history and --from-github both name jobs"},
		{[]string{"--history", handHistory, "--save", "x.csv"}, failure.Usage, "--save is for --from-github; write that too"},
		{[]string{"--from-github", "https://github.com/acme"}, failure.Usage, `--from-github "https://github.com/acme" is neither an OWNER nor OWNER/NAME`},
		{[]string{"--from-github", "acme"}, failure.NotAllowed, "GITHUB_TOKEN is not set"},
		{[]string{"--history", handHistory, "--wait", "1m"}, failure.Usage, "--wait is for --optimize; write that too"},
		{[]string{"--history", handHistory, "--optimize", "--wait", "0s"}, failure.Usage, "--wait 0s is not more than 0s"},
		{[]string{"--history", handHistory, "--optimize", "--time-zone", "Mars"}, failure.Usage, "--time-zone: unknown time zone Mars"},
		{[]string{"--history", handHistory + ".none", "--optimize", "--time-zone", "Mars"}, failure.Usage, "--time-zone: unknown time zone Mars"},
		{[]string{"--history", handHistory, "--optimize", "--time-zone", "Local"}, failure.Usage, "--time-zone Local is not the same everywhere"},
		{[]string{"--history", handHistory, "--policy", handPolicy, "--optimize", "--wait", "1s"}, failure.Failed, "no minimum and no schedule has 95 of a hundred jobs wait"},
		{[]string{"--history", handHistory, "--boot", "2h"}, failure.Usage, "--boot 2h0m0s is not from 0s to 1h"},
		{[]string{"--history", handHistory, "--label", "windows"}, failure.NotFound, "no job in " + handHistory + " has the label windows\nThe jobs have the labels \"remuda\"."},
		{[]string{"--history", "-"}, failure.Failed, "read history standard input: it is empty"},
		{[]string{"--history", handPolicy}, failure.Failed, "line 1: there is no column repository"},
		{[]string{"--history", handHistory, "--policy", handHistory}, failure.Failed, "hand.csv:"},
		{[]string{"--history", handHistory, "--picture", handHistory + "/no.svg"}, failure.Failed, "write picture"},
		{[]string{"--history", handHistory, "--present", handPolicy + ".none"}, failure.Failed, "no such file"},
	} {
		got := say(t, append([]string{"plan"}, test.args...)...)
		if got.code != test.code || !strings.Contains(got.stderr, test.says) || got.stdout != "" {
			t.Errorf("%q: %+v, want code %d and %q", test.args, got, test.code, test.says)
		}
	}
}

// TestAPlanOfTheExample: what the page says can be typed.
func TestAPlanOfTheExample(t *testing.T) {
	t.Parallel()
	got := say(t, "plan", "--history", dayHistory, "--policy", "../examples/history/warm.yaml", "--present", "../examples/history/kept.yaml", "-o", "wide")
	if got.code != failure.OK || !strings.Contains(got.stdout, "788 jobs of 9 repositories") || !strings.Contains(got.stdout, "PRESENT: P50") {
		t.Errorf("%+v", got)
	}
}

// TestAPlanFromGitHub: the token is that of the environment, what was read is kept, and what has no job that ran is said.
func TestAPlanFromGitHub(t *testing.T) {
	t.Parallel()
	server, err := githubsim.New(githubsim.Options{StateDir: t.TempDir(), Times: githubsim.QuickTimes})
	check(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		check(t, <-served)
	})
	github := "http://" + listener.Addr().String()
	post(t, github+"/_standin/runs", `{"repository": "acme/app", "run_id": 41, "workflow": "on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n"}`)
	post(t, github+"/_standin/runs/41/cancel", "")
	saved := filepath.Join(t.TempDir(), "jobs.csv")
	var stdout, stderr bytes.Buffer
	app := &cli.App{Stdout: &stdout, Stderr: &stderr, Now: time.Now, Globals: cli.Globals{Output: output.Table}, Getenv: func(name string) string {
		return map[string]string{"GITHUB_TOKEN": "t", "GITHUB_API_URL": github}[name]
	}}
	code := run(t.Context(), app, []string{"plan", "--from-github", "acme/app", "--since", "2d", "--save", saved})
	if said := stderr.String(); code != failure.NotFound || !strings.Contains(said, "no job to play in acme/app") || !strings.Contains(said, "Jobs left out: 1, since no runner ever had them.") {
		t.Errorf("code %d: %s%s", code, &stdout, said)
	}
	if rows, err := os.ReadFile(saved); err != nil || !strings.Contains(string(rows), "\nacme/app,box,") {
		t.Errorf("%v: %s", err, rows)
	}
	app.Getenv = func(name string) string {
		return map[string]string{"GITHUB_TOKEN": "t", "GITHUB_API_URL": "http://github.example"}[name]
	}
	if code := run(t.Context(), app, []string{"plan", "--from-github", "acme/app"}); code != failure.Usage {
		t.Errorf("plain http: code %d", code)
	}
}

// TestWhatAServerSays in an error does not command the terminal.
func TestWhatAServerSays(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"message":"no\u001b[2J\u202e good"}`))
	}))
	t.Cleanup(server.Close)
	var stdout, stderr bytes.Buffer
	app := &cli.App{Stdout: &stdout, Stderr: &stderr, Now: time.Now, Globals: cli.Globals{Output: output.Table}, Getenv: func(name string) string {
		return map[string]string{"GITHUB_TOKEN": "t", "GITHUB_API_URL": server.URL}[name]
	}}
	if code := run(t.Context(), app, []string{"plan", "--from-github", "acme"}); code == failure.OK {
		t.Errorf("it went well: %s", &stdout)
	}
	if said := stderr.String(); strings.ContainsAny(said, "\x1b\u202e") || !strings.Contains(said, "no [2J  good") {
		t.Errorf("%q", said)
	}
}

// TestWhatKeepsAReadingAway has an exit code of its own, and says what to do.
func TestWhatKeepsAReadingAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		save string
		code failure.Code
		says string
	}{
		"no such owner":  {&fromgithub.RefusedError{Status: 404}, "", failure.NotFound, "Look at how acme is spelled"},
		"a wrong token":  {&fromgithub.RefusedError{Status: 401, Message: "Bad credentials"}, "x.csv", failure.NotAllowed, "GitHub refuses the token in GITHUB_TOKEN. It may have expired; make another one. What was read is in x.csv"},
		"a small token":  {&fromgithub.RefusedError{Status: 403}, "", failure.NotAllowed, "has to be allowed to read Actions"},
		"a fault":        {&fromgithub.RefusedError{Status: 502}, "", failure.Unavailable, "With --save FILE"},
		"another status": {&fromgithub.RefusedError{Status: 422}, "", failure.Failed, "With --save FILE"},
		"no connection":  {&url.Error{Op: "Get", URL: "https://api.github.com", Err: errors.New("connection refused")}, "x.csv", failure.Unavailable, "What was read is in x.csv"},
		"an interrupt":   {context.Canceled, "x.csv", failure.Interrupted, "What was read is in x.csv"},
		"a full disk":    {errors.New("no space left"), "x.csv", failure.Failed, "What was read is in x.csv"},
	} {
		var got *failure.Error
		err := historyFlags{github: "acme", save: test.save}.cutShort(fmt.Errorf("list: %w", test.err))
		if !errors.As(err, &got) || got.Code != test.code || !strings.Contains(got.Remedy, test.says) {
			t.Errorf("%s: %+v, want code %d and %q", name, got, test.code, test.says)
		}
	}
}

// TestLabelsOf: a wrong label is answered with those that there are, the most frequent first.
func TestLabelsOf(t *testing.T) {
	t.Parallel()
	var jobs []history.Job
	for i := range 14 {
		jobs = append(jobs, history.Job{Labels: []string{"self-hosted", fmt.Sprintf("l%02d", i)}})
	}
	for want, of := range map[string][]history.Job{
		"The jobs have no labels recorded.":                     {{}},
		`The jobs have the labels "self-hosted", "l00", "l01".`: jobs[:2],
		`The jobs have the labels "self-hosted", "l00", "l01", "l02", "l03", "l04", "l05", "l06", "l07", "l08", "l09", "l10".`: jobs,
	} {
		if got := labelsOf(of); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func post(t *testing.T, url, body string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	check(t, err)
	check(t, resp.Body.Close())
	if resp.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s: %s", url, resp.Status)
	}
}
