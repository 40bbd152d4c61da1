package githubsim

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/payload"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// checkRequest is what a check run is made or changed with (REST API, "Create a check run"). A key that is left out changes nothing.
type checkRequest struct {
	Name        *string              `json:"name"`
	HeadSHA     string               `json:"head_sha"`
	DetailsURL  *string              `json:"details_url"`
	ExternalID  *string              `json:"external_id"`
	Status      *string              `json:"status"`
	Conclusion  *string              `json:"conclusion"`
	StartedAt   *time.Time           `json:"started_at"`
	CompletedAt *time.Time           `json:"completed_at"`
	Output      *payload.CheckOutput `json:"output"`
}

// maxCheckText is how many bytes the summary and the text of a check run may each have. The reference of the REST API says characters, and GitHub
// refuses with "summary exceeds a maximum bytesize of 65535" (github/docs#35252).
const maxCheckText = 65535

// completed is the status of a check run that is over.
const completed = "completed"

var (
	checkStatuses    = []string{"queued", "in_progress", completed}
	checkConclusions = []string{"action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out"}
)

func (q checkRequest) check() error {
	switch {
	case q.Status != nil && !slices.Contains(checkStatuses, *q.Status):
		return rest.Problem(http.StatusUnprocessableEntity, "Invalid request. %q is not a status.", *q.Status)
	case q.Conclusion != nil && !slices.Contains(checkConclusions, *q.Conclusion):
		return rest.Problem(http.StatusUnprocessableEntity, "Invalid request. %q is not a conclusion.", *q.Conclusion)
	case q.Status != nil && *q.Status == completed && q.Conclusion == nil:
		return rest.Problem(http.StatusUnprocessableEntity, "Invalid request. A completed check run needs a conclusion.")
	case q.Output != nil && (q.Output.Title == "" || q.Output.Summary == ""):
		return rest.Problem(http.StatusUnprocessableEntity, "Invalid request. An output needs a title and a summary.")
	case q.Output != nil && len(q.Output.Summary) > maxCheckText:
		return rest.Problem(http.StatusUnprocessableEntity, "Validation Failed: summary exceeds a maximum bytesize of %d", maxCheckText)
	case q.Output != nil && len(q.Output.Text) > maxCheckText:
		return rest.Problem(http.StatusUnprocessableEntity, "Validation Failed: text exceeds a maximum bytesize of %d", maxCheckText)
	}
	return nil
}

// reopens reports whether a check run that is over would be open again, which GitHub refuses (Mergifyio/mergify#1989): another one is made then.
func (q checkRequest) reopens(c *payload.Check) bool {
	return c.Status == completed && q.Status != nil && *q.Status != completed
}

// into changes a check run.
func (q checkRequest) into(c *payload.Check, now time.Time) {
	for from, to := range map[*string]*string{q.Name: &c.Name, q.DetailsURL: &c.DetailsURL, q.ExternalID: &c.ExternalID, q.Status: &c.Status, q.Conclusion: &c.Conclusion} {
		if from != nil {
			*to = *from
		}
	}
	if q.Output != nil {
		c.Output = *q.Output
	}
	if q.StartedAt != nil {
		c.StartedAt = *q.StartedAt
	}
	if q.Conclusion != nil { // GitHub: that alone completes it
		c.Status, c.CompletedAt = completed, now
	}
	if q.CompletedAt != nil {
		c.CompletedAt = *q.CompletedAt
	}
}

// appThatMayWriteChecks is the App of a call that may write check runs.
func (s *Server) appThatMayWriteChecks(r *http.Request) (*state.App, error) {
	c := callerOf(r)
	if c.installation == nil {
		return nil, rest.Problem(http.StatusForbidden, "You must authenticate via a GitHub App.")
	}
	if c.token.Permissions["checks"] != "write" {
		return nil, rest.Problem(http.StatusForbidden, "Resource not accessible by integration")
	}
	return s.apps[c.app], nil
}

func (s *Server) createCheck(r *http.Request) (*rest.Answer, error) {
	var q checkRequest
	if err := rest.Decode(r, &q, false); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.appThatMayWriteChecks(r)
	switch {
	case err != nil:
		return nil, err
	case q.Name == nil || *q.Name == "" || q.HeadSHA == "":
		return nil, rest.Problem(http.StatusUnprocessableEntity, "Invalid request. \"name\" and \"head_sha\" weren't supplied.")
	case !s.hasCommit(repositoryOf(r), q.HeadSHA):
		return nil, rest.Problem(http.StatusUnprocessableEntity, "No commit found for SHA: %s", q.HeadSHA)
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	c := &payload.Check{ID: s.nextID("check", 1), Repository: repositoryOf(r), HeadSHA: q.HeadSHA, App: a, Status: "queued", StartedAt: s.now()}
	q.into(c, s.now())
	s.checks = append(s.checks, c)
	return &rest.Answer{Status: http.StatusCreated, Body: s.site().Check(c)}, nil
}

func (s *Server) updateCheck(r *http.Request) (*rest.Answer, error) {
	var q checkRequest
	id, err := rest.PathID(r, "id")
	if err == nil {
		err = rest.Decode(r, &q, false)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.appThatMayWriteChecks(r)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.checks, func(c *payload.Check) bool { return c.ID == id && strings.EqualFold(c.Repository, repositoryOf(r)) })
	switch {
	case i < 0:
		return nil, rest.ErrNotFound
	case s.checks[i].App.ID != a.ID:
		return nil, rest.Problem(http.StatusForbidden, "Invalid app_id `%d` - check run can only be modified by the GitHub App that created it.", a.ID)
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	if q.reopens(s.checks[i]) {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "Invalid request. The check run is completed, and cannot be %s again.", *q.Status)
	}
	q.into(s.checks[i], s.now())
	return rest.OK(s.site().Check(s.checks[i])), nil
}

// listChecks lists the check runs of a commit, the newest first. Without filter=all these are the newest of each name and App alone.
func (s *Server) listChecks(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := callerOf(r); c.installation != nil && c.token.Permissions["checks"] == "" {
		return nil, rest.Problem(http.StatusForbidden, "Resource not accessible by integration")
	}
	if !s.hasCommit(repositoryOf(r), r.PathValue("ref")) {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "No commit found for SHA: %s", r.PathValue("ref"))
	}
	list := []rest.Object{}
	query := r.URL.Query()
	is := func(parameter, value string) bool { return query.Get(parameter) == "" || query.Get(parameter) == value }
	shown := map[string]bool{}
	for _, c := range slices.Backward(s.checks) {
		if !strings.EqualFold(c.Repository, repositoryOf(r)) || c.HeadSHA != r.PathValue("ref") {
			continue
		}
		app := strconv.FormatInt(c.App.ID, 10)
		older := shown[app+" "+c.Name]
		shown[app+" "+c.Name] = true
		if is("check_name", c.Name) && is("app_id", app) && is("status", c.Status) && (!older || query.Get("filter") == "all") {
			list = append(list, s.site().Check(c))
		}
	}
	return s.page(r, "check_runs", list), nil
}

// forgetChecks removes the check runs of a commit that no run is of any more.
func (s *Server) forgetChecks(repository, sha string) {
	if !s.hasCommit(repository, sha) {
		s.checks = slices.DeleteFunc(s.checks, func(c *payload.Check) bool { return strings.EqualFold(c.Repository, repository) && c.HeadSHA == sha })
	}
}

// hasCommit reports whether some run of the repository is of the commit: the stand-in knows of no other commits.
func (s *Server) hasCommit(repository, sha string) bool {
	for _, run := range s.runs {
		if strings.EqualFold(run.Repository, repository) && run.SHA() == sha {
			return true
		}
	}
	return false
}
