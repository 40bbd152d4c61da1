package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// The part of GitHub.

func (m *machine) token(what string, kind lifecycle.RegistrationKind) lifecycle.Registration {
	m.t.Helper()
	var got struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	m.post("/repos/"+repository+"/actions/runners/"+what+"-token", nil, &got)
	return lifecycle.Registration{
		Kind: kind, URL: m.github.URL + "/" + repository, Secret: lifecycle.Secret(got.Token), ExpiresAt: got.ExpiresAt,
	}
}

func (m *machine) post(path string, body, into any) {
	m.t.Helper()
	text, err := json.Marshal(body)
	check(m.t, err)
	req, err := http.NewRequest(http.MethodPost, m.github.URL+path, bytes.NewReader(text))
	check(m.t, err)
	m.call(req, into)
}

func (m *machine) get(path string, into any) {
	m.t.Helper()
	req, err := http.NewRequest(http.MethodGet, m.github.URL+path, nil)
	check(m.t, err)
	m.call(req, into)
}

func (m *machine) call(req *http.Request, into any) {
	m.t.Helper()
	req.Header.Set("Authorization", "Bearer test")
	resp, err := http.DefaultClient.Do(req)
	check(m.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	check(m.t, err)
	if resp.StatusCode >= 300 {
		m.t.Fatalf("%s %s: %s: %s", req.Method, req.URL, resp.Status, answer)
	}
	if into != nil && len(answer) > 0 {
		check(m.t, json.Unmarshal(answer, into))
	}
}

type job struct {
	Name, Status, Conclusion, Log string
}

type workflowRun struct {
	Status, Conclusion string
	Jobs               []job
}

// startRun starts a workflow run with one job of one script.
func (m *machine) startRun(runID, runsOn, script string) {
	m.t.Helper()
	text := "on: push\njobs:\n  only:\n    runs-on: " + runsOn + "\n    steps:\n      - run: |\n"
	for line := range strings.Lines(script) {
		text += "          " + line
	}
	m.post("/_standin/runs", map[string]any{"repository": repository, "run_id": json.Number(runID), "workflow": text + "\n"}, nil)
}

func (m *machine) run(runID string) workflowRun {
	m.t.Helper()
	var r workflowRun
	m.get("/_standin/runs/"+runID, &r)
	return r
}

// finished waits for a run to end and returns its one job.
func (m *machine) finished(runID string) job {
	m.t.Helper()
	m.eventually("run "+runID+" is completed", func() bool { return m.run(runID).Status == "completed" })
	return m.run(runID).Jobs[0]
}

// runners are the names of the registrations that GitHub has.
func (m *machine) runners() []string {
	m.t.Helper()
	var got struct {
		Runners []struct{ Name string } `json:"runners"`
	}
	m.get("/_standin/runners", &got)
	var names []string
	for _, r := range got.Runners {
		names = append(names, r.Name)
	}
	return names
}
