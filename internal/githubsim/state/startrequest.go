package state

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// StartRequest is a call that starts a run as a person would.
type StartRequest struct {
	Repository string      `json:"repository"`
	RunID      json.Number `json:"run_id"`
	Workflow   string      `json:"workflow"`
	Origin
}

// Check returns the id that the run is to have; 0 is the next one.
func (q StartRequest) Check() (id int64, err error) {
	if !IsRepository(q.Repository) {
		return 0, rest.Problem(http.StatusUnprocessableEntity, "repository %q is not of the form owner/name", q.Repository)
	}
	if err := q.Origin.Check(); err != nil {
		return 0, err
	}
	if q.RunID != "" {
		if id, err = strconv.ParseInt(string(q.RunID), 10, 64); err != nil || id <= 0 {
			return 0, rest.Problem(http.StatusUnprocessableEntity, "run_id %q is not a positive number", q.RunID)
		}
	}
	if q.Workflow == "" {
		return 0, rest.Problem(http.StatusUnprocessableEntity, "workflow is empty: it is the text of a workflow file")
	}
	return id, nil
}
