package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
	Name   string `json:"name"`
	Status string `json:"status"`
	Busy   bool   `json:"busy"`
}

// StartRun starts a workflow run of the workflow's text, under a given id.
func (g *GitHub) StartRun(ctx context.Context, repository, runID, workflow string) (Run, error) {
	var run Run
	err := g.call(ctx, http.MethodPost, "/_standin/runs", map[string]any{
		"repository": repository, "run_id": json.Number(runID), "workflow": workflow,
	}, &run)
	return run, err
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

// Runners lists the registrations.
func (g *GitHub) Runners(ctx context.Context) ([]Runner, error) {
	var list struct {
		Runners []Runner `json:"runners"`
	}
	err := g.call(ctx, http.MethodGet, "/_standin/runners", nil, &list)
	return list.Runners, err
}

func (g *GitHub) call(ctx context.Context, method, path string, body, into any) error {
	what := fmt.Sprintf("stand-in: %s %s", method, path)
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, g.base+path, reader)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s: %s: %s", what, resp.Status, bytes.TrimSpace(answer))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
