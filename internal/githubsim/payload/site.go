// Package payload renders the objects of GitHub's API: accounts, repositories, runs, jobs and runners, as its OpenAPI description and
// its webhook examples have them.
package payload

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// The user who does everything on the stand-in.
const (
	Actor      = "remuda-standin"
	actorEmail = "remuda-standin@example.com"
)

// Site is the stand-in as its answers name it.
type Site struct {
	URL   string    // how clients reach it, without a slash at the end
	Since time.Time // when it began; each repository is as old
}

// API returns the address of a call of the REST API.
func (s Site) API(format string, args ...any) string {
	return s.URL + "/api/v3" + fmt.Sprintf(format, args...)
}

func (s Site) Runner(r *state.Runner, online, busy bool) rest.Object {
	status := "offline"
	if online {
		status = "online"
	}
	return rest.Object{
		"id": r.ID, "runner_group_id": r.Group(), "name": r.Name, "os": "linux", "status": status, "busy": busy,
		"ephemeral": r.Ephemeral, "labels": Labels(r.Labels),
	}
}

func Labels(labels []state.Label) []rest.Object {
	out := []rest.Object{}
	for _, l := range labels {
		out = append(out, rest.Object{"id": l.ID, "name": l.Name, "type": l.Type})
	}
	return out
}
