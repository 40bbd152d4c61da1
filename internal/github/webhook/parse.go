// Package webhook reads the deliveries of GitHub's webhooks. It is pure: the caller
// checks the signature before, and stores the result.
package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
)

// Error is a delivery that is not as GitHub makes them.
type Error struct {
	// Field is where, such as "workflow_job.run_id"; "body" is all of it.
	Field string
	// Why is the rest of the sentence that Field begins.
	Why string
	// Future is set when what is wrong is a time ahead of ours: a clock is, or the delivery was made up.
	Future bool
}

func (e *Error) Error() string { return "parse webhook: " + e.Field + " " + e.Why }

// The ages of deliveries.
const (
	// webhookAhead is by how much GitHub's clock may be ahead of ours.
	webhookAhead = 5 * time.Minute
	// lateQueued: GitHub gives up a job that waited for a runner for 24 h. But a job is made when it begins to wait
	// for an approval, a wait timer (both up to 30 days) or its concurrency group, and is queued after that. So a
	// job that was made earlier is one of these, or its delivery is an old one that was sent again under another
	// id (the id is not signed), and GitHub is asked which.
	lateQueued = 25 * time.Hour
	// staleQueued: GitHub ends a run after 35 days.
	staleQueued = 36 * 24 * time.Hour
	// staleRun: the hosts of a run that ended so long ago are gone, by their max
	// runtime (at most 120 h) if by nothing else.
	staleRun = 7 * 24 * time.Hour
)

// The bounds of what a delivery says. GitHub's own are narrower.
const (
	maxAttempt    = 1000
	maxLabels     = 64
	maxLabel      = 256 // bytes
	maxRunnerName = 256
	maxBranch     = 1 << 10
	maxPath       = 4 << 10
)

var (
	deliveryID     = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
	githubWord     = regexp.MustCompile(`^[a-z_]{1,64}$`)
	repositoryName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,39}/[A-Za-z0-9._-]{1,100}$`)
)

// delivery is what is read of a body.
type delivery struct {
	Action     string       `json:"action"`
	Job        *deliveryJob `json:"workflow_job"`
	Run        *deliveryRun `json:"workflow_run"`
	Repository struct {
		ID       int64  `json:"id"`
		FullName string `json:"full_name"`
		Owner    struct {
			ID int64 `json:"id"`
		} `json:"owner"`
	} `json:"repository"`
}

type deliveryJob struct {
	ID          int64    `json:"id"`
	RunID       int64    `json:"run_id"`
	RunAttempt  *int     `json:"run_attempt"`
	Name        string   `json:"name"`
	Workflow    string   `json:"workflow_name"`
	Labels      []string `json:"labels"`
	Status      string   `json:"status"`
	Conclusion  string   `json:"conclusion"`
	RunnerName  string   `json:"runner_name"`
	RunnerID    int64    `json:"runner_id"`
	CreatedAt   string   `json:"created_at"`
	StartedAt   string   `json:"started_at"`
	CompletedAt string   `json:"completed_at"`
}

type deliveryRun struct {
	ID             int64  `json:"id"`
	RunAttempt     *int   `json:"run_attempt"`
	Event          string `json:"event"`
	HeadBranch     string `json:"head_branch"`
	Path           string `json:"path"`
	Status         string `json:"status"`
	Conclusion     string `json:"conclusion"`
	CreatedAt      string `json:"created_at"`
	UpdatedAt      string `json:"updated_at"`
	HeadRepository *struct {
		ID int64 `json:"id"`
	} `json:"head_repository"`
}

// Parse reads a delivery of an event, the value of X-GitHub-Event, under its id, that of X-GitHub-Delivery,
// as of now. It does not ask who sent it: the signature is checked before.
//
// Of workflow_job it takes the actions queued, in_progress and completed, and of workflow_run completed. The
// status beside the action is another at times, in GitHub's own examples too. Of a job the further of the two
// is returned as its status. A completed run whose status is another one may have been started again: it is
// returned as completed, and Late, so that GitHub is asked. So is a queued job that was made more than a day ago.
// What is of no use is lifecycle.ErrWebhookIgnored, what is malformed a *Error.
func Parse(event, id string, body []byte, now time.Time) (lifecycle.Webhook, error) {
	if !deliveryID.MatchString(id) {
		return lifecycle.Webhook{}, malformed("delivery id", "is not 1 to 64 of 0-9, A-Z, a-z and -")
	}
	if event != lifecycle.EventWorkflowJob && event != lifecycle.EventWorkflowRun {
		return lifecycle.Webhook{}, ignored("events %.80q are of no use", event)
	}
	d, err := readDelivery(body)
	if err != nil {
		return lifecycle.Webhook{}, err
	}
	w := lifecycle.Webhook{
		DeliveryID: id, Action: d.Action, ReceivedAt: now.UTC(),
		RepositoryID: d.Repository.ID, OwnerID: d.Repository.Owner.ID,
	}
	if event == lifecycle.EventWorkflowJob {
		w.Job, err = d.job(now)
		w.Late = err == nil && d.Action == lifecycle.StatusQueued && now.Sub(w.Job.QueuedAt) > lateQueued
	} else {
		w.Run, err = d.run(now)
		w.Late = err == nil && d.Run.Status != lifecycle.StatusCompleted
	}
	if err != nil {
		return lifecycle.Webhook{}, err
	}
	return w, nil
}

func ignored(format string, args ...any) error {
	return fmt.Errorf("%w: %s", lifecycle.ErrWebhookIgnored, fmt.Sprintf(format, args...))
}

func malformed(field, why string) error { return &Error{Field: field, Why: why} }

// readDelivery decodes a body and checks what both events have.
func readDelivery(body []byte) (delivery, error) {
	var d delivery
	if err := json.Unmarshal(body, &d); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return d, malformed(wrong.Field, "is not of the type that it has on GitHub")
		}
		return d, malformed("body", "is not one JSON object: "+err.Error())
	}
	switch name := d.Repository.FullName; {
	case !githubWord.MatchString(d.Action):
		return d, malformed("action", "is no action of GitHub's")
	case !repositoryName.MatchString(name) || strings.HasSuffix(name, "/.") || strings.HasSuffix(name, "/.."):
		return d, malformed("repository.full_name", "is not owner/name")
	case d.Repository.ID <= 0:
		return d, malformed("repository.id", "is not positive")
	case d.Repository.Owner.ID <= 0:
		return d, malformed("repository.owner.id", "is not positive")
	}
	return d, nil
}

// job is the job of a workflow_job.
func (d delivery) job(now time.Time) (*lifecycle.WorkflowJob, error) {
	j := d.Job
	switch {
	case j == nil:
		return nil, malformed(lifecycle.EventWorkflowJob, "is missing")
	case d.Action != lifecycle.StatusQueued && d.Action != lifecycle.StatusInProgress && d.Action != lifecycle.StatusCompleted:
		return nil, ignored("a job's action %s brings nothing to do", d.Action)
	}
	in := fields{of: lifecycle.EventWorkflowJob, now: now}
	out := &lifecycle.WorkflowJob{
		ID: in.id("id", j.ID), Repository: d.Repository.FullName,
		RunID: strconv.FormatInt(in.id("run_id", j.RunID), 10), RunAttempt: in.attempt(j.RunAttempt),
		Name: line.First(j.Name), Workflow: meter.WorkflowName(j.Workflow), Labels: j.Labels, Status: further(d.Action, in.word("status", j.Status)), Conclusion: in.wordOrNone("conclusion", j.Conclusion),
		RunnerName: in.name("runner_name", j.RunnerName), RunnerID: max(j.RunnerID, 0),
		QueuedAt: in.time("created_at", j.CreatedAt), StartedAt: in.time("started_at", j.StartedAt), CompletedAt: in.time("completed_at", j.CompletedAt),
	}
	if out.QueuedAt.IsZero() {
		// Old Enterprise Servers say only this, which of a queued job is the same.
		out.QueuedAt = out.StartedAt
	}
	switch {
	case in.err != nil:
		return nil, in.err
	case out.QueuedAt.IsZero():
		return nil, malformed("workflow_job.created_at", "is missing")
	case d.Action == lifecycle.StatusQueued && now.Sub(out.QueuedAt) > staleQueued:
		return nil, ignored("the job is of %s, and GitHub ends a run after 35 days", out.QueuedAt.Format(time.RFC3339))
	case !labelsFit(j.Labels):
		return nil, ignored("no runner has such labels")
	}
	return out, nil
}

// further is the later of two statuses in a job's life. An unknown one, such as waiting, comes before all.
func further(a, b string) string {
	life := []string{lifecycle.StatusQueued, lifecycle.StatusInProgress, lifecycle.StatusCompleted}
	if slices.Index(life, b) > slices.Index(life, a) {
		return b
	}
	return a
}

// labelsFit reports whether labels are within the bounds. They come from the author
// of a workflow. Labels that no runner can have are not an error of GitHub's, and
// refusing them would only make GitHub send the delivery again.
func labelsFit(labels []string) bool {
	for _, l := range labels {
		if l == "" || known(l, maxLabel) != l {
			return false
		}
	}
	return len(labels) <= maxLabels
}

// run is the run of a workflow_run.
func (d delivery) run(now time.Time) (*lifecycle.WorkflowRun, error) {
	r := d.Run
	switch {
	case r == nil:
		return nil, malformed(lifecycle.EventWorkflowRun, "is missing")
	case d.Action != lifecycle.StatusCompleted:
		return nil, ignored("a run's action %s brings nothing to do", d.Action)
	}
	in := fields{of: lifecycle.EventWorkflowRun, now: now}
	out := &lifecycle.WorkflowRun{
		RunID: strconv.FormatInt(in.id("id", r.ID), 10), RunAttempt: in.attempt(r.RunAttempt),
		Repository: d.Repository.FullName, RepositoryID: d.Repository.ID, OwnerID: d.Repository.Owner.ID,
		Event: in.wordOrNone("event", r.Event), HeadBranch: known(r.HeadBranch, maxBranch), Path: known(r.Path, maxPath),
		Status: lifecycle.StatusCompleted, Conclusion: in.wordOrNone("conclusion", r.Conclusion),
	}
	in.word("status", r.Status)
	if r.HeadRepository != nil {
		out.HeadRepositoryID = in.id("head_repository.id", r.HeadRepository.ID)
	}
	in.time("created_at", r.CreatedAt)
	ended := in.time("updated_at", r.UpdatedAt)
	switch {
	case in.err != nil:
		return nil, in.err
	case ended.IsZero():
		return nil, malformed("workflow_run.updated_at", "is missing")
	case now.Sub(ended) > staleRun:
		return nil, ignored("the run ended at %s, more than 7 days ago", ended.Format(time.RFC3339))
	}
	return out, nil
}

// known is a text that people chose, or nothing if it cannot be stored and
// shown: what is not known matches no pattern of a rule.
func known(s string, most int) string {
	if len(s) > most || strings.ContainsFunc(s, unicode.IsControl) {
		return ""
	}
	return s
}

// fields checks the fields of one object and keeps the first error.
type fields struct {
	of  string
	now time.Time
	err error
}

func (f *fields) wrong(field, why string) {
	if f.err == nil {
		f.err = malformed(f.of+"."+field, why)
	}
}

func (f *fields) id(field string, v int64) int64 {
	if v <= 0 {
		f.wrong(field, "is not positive")
	}
	return v
}

// attempt is 1 when it is absent: some deliveries have none.
func (f *fields) attempt(v *int) int {
	if v == nil {
		return 1
	}
	if *v < 1 || *v > maxAttempt {
		f.wrong("run_attempt", fmt.Sprintf("is not from 1 to %d", maxAttempt))
	}
	return *v
}

func (f *fields) word(field, v string) string {
	if !githubWord.MatchString(v) {
		f.wrong(field, "is no word of GitHub's")
	}
	return v
}

func (f *fields) wordOrNone(field, v string) string {
	if v == "" {
		return ""
	}
	return f.word(field, v)
}

func (f *fields) name(field, v string) string {
	if known(v, maxRunnerName) != v {
		f.wrong(field, fmt.Sprintf("is longer than %d bytes or has control characters", maxRunnerName))
	}
	return v
}

// time is zero when it is absent.
func (f *fields) time(field, v string) time.Time {
	if v == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, v)
	switch {
	case err != nil:
		f.wrong(field, "is no time")
	case t.Sub(f.now) > webhookAhead && f.err == nil:
		f.err = &Error{Field: f.of + "." + field, Why: fmt.Sprintf("is more than %s ahead of our clock", webhookAhead), Future: true}
	}
	return t.UTC()
}
