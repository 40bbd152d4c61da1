package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

// GitHub is the stand-in's side door: what a person would do on GitHub.
type GitHub struct {
	base   string
	client *http.Client
}

// NewGitHub is the side door of the stand-in at host:port.
func NewGitHub(addr string) *GitHub {
	return &GitHub{base: "http://" + addr, client: &http.Client{Timeout: 30 * time.Second}}
}

// URL is where the stand-in listens.
func (g *GitHub) URL() string { return g.base }

// Run is a workflow run.
type Run struct {
	RunID      string `json:"run_id"`
	Status     string `json:"status"`
	Conclusion string `json:"conclusion"`
	Jobs       []Job  `json:"jobs"`
}

// Job is one job of a run.
type Job struct {
	ID          int64     `json:"id"`
	Name        string    `json:"name"`
	Status      string    `json:"status"`
	Conclusion  string    `json:"conclusion"`
	Runner      string    `json:"runner"`
	StartedAt   time.Time `json:"started_at"`
	CompletedAt time.Time `json:"completed_at"`
	Log         string    `json:"log"`
}

// Runner is a registration.
type Runner struct {
	ID     int64    `json:"id"` // a later registration has a higher one
	Name   string   `json:"name"`
	Labels []string `json:"labels"`
	Status string   `json:"status"`
	Busy   bool     `json:"busy"`
}

// StandsBy reports whether the runner is that of a pooled host, which waits for the claim of its next run.
func (r Runner) StandsBy() bool {
	return len(r.Labels) == 1 && strings.HasPrefix(r.Labels[0], "remuda-standby-")
}

// OfRuns are the runners that do not stand by.
func OfRuns(runners []Runner) []Runner { return slices.DeleteFunc(runners, Runner.StandsBy) }

// StartRun starts a workflow run of the workflow's text, under a given id.
func (g *GitHub) StartRun(ctx context.Context, repository, runID, workflow string) (Run, error) {
	return g.StartRunFrom(ctx, repository, runID, workflow, Origin{})
}

// Origin is where a run comes from. An empty field is as for a workflow that a user
// started by hand on the default branch.
type Origin struct {
	Event string `json:"event,omitempty"`
	// HeadRepository has the commit; another one than the run's is a fork of it.
	HeadRepository string `json:"head_repository,omitempty"`
}

// StartRunFrom is StartRun of a run that something else has started.
func (g *GitHub) StartRunFrom(ctx context.Context, repository, runID, workflow string, from Origin) (Run, error) {
	var run Run
	err := g.call(ctx, http.MethodPost, "/_standin/runs", struct {
		Repository string      `json:"repository"`
		RunID      json.Number `json:"run_id"`
		Workflow   string      `json:"workflow"`
		Origin
	}{repository, json.Number(runID), workflow, from}, &run)
	return run, err
}

// IDToken signs claims. What GitHub fills in is filled in where they say
// nothing, as the ids of their repository.
func (g *GitHub) IDToken(ctx context.Context, claims map[string]any) (string, error) {
	var answer struct {
		Value string `json:"value"`
	}
	err := g.call(ctx, http.MethodPost, "/_standin/oidc/token", map[string]any{"claims": claims}, &answer)
	return answer.Value, err
}

// Run reads a run.
func (g *GitHub) Run(ctx context.Context, runID string) (Run, error) {
	var run Run
	err := g.call(ctx, http.MethodGet, "/_standin/runs/"+runID, nil, &run)
	return run, err
}

// WaitRun reads a run until it has completed. seen, if any, hears every state.
func (g *GitHub) WaitRun(ctx context.Context, runID string, seen func(Run)) (Run, error) {
	for {
		run, err := g.Run(ctx, runID)
		if err != nil {
			return run, err
		}
		if seen != nil {
			seen(run)
		}
		if run.Status == "completed" {
			return run, nil
		}
		select {
		case <-ctx.Done():
			return run, fmt.Errorf("wait for run %s: %w", runID, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Steps are those of the jobs of a run that have begun, as GitHub's API gives them.
func (g *GitHub) Steps(ctx context.Context, repository, runID string) ([]Step, error) {
	var list struct {
		Jobs []struct {
			Steps []Step `json:"steps"`
		} `json:"jobs"`
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.base+"/api/v3/repos/"+repository+"/actions/runs/"+runID+"/jobs", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer any")
	if err := g.do(r, &list); err != nil {
		return nil, fmt.Errorf("stand-in: list jobs of run %s: %w", runID, err)
	}
	var steps []Step
	for _, j := range list.Jobs {
		steps = append(steps, j.Steps...)
	}
	return steps, nil
}

// Step is one of a job. Those before and after the steps of the workflow are GitHub's own: "Set up job", "Complete job" and the hooks.
type Step struct {
	Name      string    `json:"name"`
	StartedAt time.Time `json:"started_at"`
}

// Cancel stops a run.
func (g *GitHub) Cancel(ctx context.Context, runID string) error {
	return g.call(ctx, http.MethodPost, "/_standin/runs/"+runID+"/cancel", nil, nil)
}

// RerunFailed starts the next attempt of a run, with the jobs that did not succeed.
func (g *GitHub) RerunFailed(ctx context.Context, runID string) error {
	return g.call(ctx, http.MethodPost, "/_standin/runs/"+runID+"/rerun", map[string]any{"failed_only": true}, nil)
}

// Webhooks say where deliveries go, and how badly.
type Webhooks struct {
	Target string `json:"target"`
	Secret string `json:"secret"`
	// LoseEvery loses every so many-th delivery, and RepeatEvery sends it twice. 0: none.
	LoseEvery   int `json:"lose_every"`
	RepeatEvery int `json:"repeat_every"`
}

// SetWebhooks changes how later deliveries go.
func (g *GitHub) SetWebhooks(ctx context.Context, w Webhooks) error {
	return g.call(ctx, http.MethodPut, "/_standin/webhooks", w, nil)
}

// Delay makes the next call of a route, "METHOD /path", wait before it is answered.
func (g *GitHub) Delay(ctx context.Context, route string, delay time.Duration) error {
	return g.call(ctx, http.MethodPost, "/_standin/faults", map[string]any{
		"route": route, "count": 1, "delay_ms": delay.Milliseconds(),
	}, nil)
}

// GoAway makes every call of GitHub's API fail with 503 until ComeBack.
func (g *GitHub) GoAway(ctx context.Context) error {
	return g.call(ctx, http.MethodPost, "/_standin/faults", map[string]any{
		"route": "*", "count": math.MaxInt32, "status": http.StatusServiceUnavailable,
	}, nil)
}

// ComeBack takes back what GoAway and Delay did.
func (g *GitHub) ComeBack(ctx context.Context) error {
	return g.call(ctx, http.MethodDelete, "/_standin/faults", nil, nil)
}

// InstallApp makes a GitHub App, whose key is the PEM of a public one, and installs it on an account.
func (g *GitHub) InstallApp(ctx context.Context, appID int64, publicKey, owner string) error {
	return g.call(ctx, http.MethodPut, "/_standin/apps", map[string]any{
		"app_id": appID, "public_key": publicKey, "owners": []string{owner},
	}, nil)
}

// ServeGit has git fetch the repositories below a directory, OWNER/NAME.git in lower case.
func (g *GitHub) ServeGit(ctx context.Context, dir string) error {
	return g.call(ctx, http.MethodPut, "/_standin/git", map[string]any{"dir": dir}, nil)
}

// Calls is how often a route was called since the stand-in began.
type Calls struct {
	Method string `json:"method"`
	Route  string `json:"route"`
	Count  int64  `json:"count"`
}

// OfGitHub reports whether the route is one of GitHub's own API.
func (c Calls) OfGitHub() bool {
	return !strings.HasPrefix(c.Route, "/_standin/") && !strings.HasPrefix(c.Route, "/.well-known/")
}

// Calls lists what was called.
func (g *GitHub) Calls(ctx context.Context) ([]Calls, error) {
	var list struct {
		Calls []Calls `json:"calls"`
	}
	err := g.call(ctx, http.MethodGet, "/_standin/calls", nil, &list)
	return list.Calls, err
}

// Runners lists the registrations.
func (g *GitHub) Runners(ctx context.Context) ([]Runner, error) {
	var list struct {
		Runners []Runner `json:"runners"`
	}
	err := g.call(ctx, http.MethodGet, "/_standin/runners", nil, &list)
	return list.Runners, err
}

// DeleteRunner deletes a registration over the API, as a click on GitHub's page does.
func (g *GitHub) DeleteRunner(ctx context.Context, repository string, id int64) error {
	return g.callAPI(ctx, http.MethodDelete, fmt.Sprintf("/repos/%s/actions/runners/%d", repository, id))
}

// callAPI makes a call of GitHub's own API.
func (g *GitHub) callAPI(ctx context.Context, method, path string) error {
	req, err := http.NewRequestWithContext(ctx, method, g.base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer standin")
	if err := g.do(req, nil); err != nil {
		return fmt.Errorf("stand-in: %s %s: %w", method, path, err)
	}
	return nil
}

func (g *GitHub) call(ctx context.Context, method, path string, body, into any) error {
	if err := g.exchange(ctx, method, path, body, into); err != nil {
		return fmt.Errorf("stand-in: %s %s: %w", method, path, err)
	}
	return nil
}

func (g *GitHub) exchange(ctx context.Context, method, path string, body, into any) error {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, g.base+path, reader)
	if err != nil {
		return err
	}
	return g.do(req, into)
}

func (g *GitHub) do(req *http.Request, into any) error {
	resp, err := g.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	switch {
	case err != nil:
		return err
	case resp.StatusCode >= 300:
		return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(answer))
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}

// Standin is a GitHub stand-in that runs alone, for a `controld serve`.
type Standin struct {
	GitHub *GitHub
	// Addr is where it listens, host:port.
	Addr string

	child *child
}

// StartStandin starts the stand-in of the controld in bin, which keeps what it has in a directory, and waits
// for its ready line.
func StartStandin(ctx context.Context, bin, stateDir string, stderr io.Writer) (*Standin, error) {
	child, values, err := startChild(ctx, "stand-in", bin, stderr, "github-standin", "--addr", "127.0.0.1:0", "--state-dir", stateDir)
	if err != nil {
		return nil, err
	}
	return &Standin{GitHub: NewGitHub(values["github"]), Addr: values["github"], child: child}, nil
}

// Stop ends it with SIGTERM.
func (s *Standin) Stop() error { return s.child.stop() }
