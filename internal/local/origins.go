package local

import (
	"context"
	"encoding/json"
	"net/http"
)

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
