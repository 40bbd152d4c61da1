package payload

import (
	"fmt"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// Check is a check run. It does not outlive a restart of the stand-in.
type Check struct {
	ID                                    int64
	Repository, HeadSHA, Name, ExternalID string
	DetailsURL, Status, Conclusion        string
	Output                                CheckOutput
	StartedAt, CompletedAt                time.Time
	App                                   *state.App
}

// CheckOutput is what a check run shows.
type CheckOutput struct {
	Title   string `json:"title"`
	Summary string `json:"summary"`
	Text    string `json:"text"`
}

// Check renders a check run.
func (s Site) Check(c *Check) rest.Object {
	url := s.API("/repos/%s/check-runs/%d", c.Repository, c.ID)
	return rest.Object{
		"id": c.ID, "node_id": fmt.Sprintf("CR_%d", c.ID), "name": c.Name, "head_sha": c.HeadSHA, "external_id": c.ExternalID,
		"url": url, "html_url": fmt.Sprintf("%s/%s/runs/%d", s.URL, c.Repository, c.ID), "details_url": rest.OrNull(c.DetailsURL),
		"status": c.Status, "conclusion": rest.OrNull(c.Conclusion), "started_at": rest.Time(c.StartedAt), "completed_at": rest.Time(c.CompletedAt),
		"output": rest.Object{
			"title": rest.OrNull(c.Output.Title), "summary": rest.OrNull(c.Output.Summary), "text": rest.OrNull(c.Output.Text),
			"annotations_count": 0, "annotations_url": url + "/annotations",
		},
		"check_suite": rest.Object{"id": c.App.ID}, "app": s.App(c.App), "pull_requests": []any{},
	}
}
