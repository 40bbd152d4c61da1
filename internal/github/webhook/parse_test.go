package webhook_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/github/webhook"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// exampleDeliveries are those that GitHub itself gives, by their file's name,
// which begins with event and action.
func exampleDeliveries(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("../../githubsim/testdata/webhooks/*.json")
	if err != nil || len(paths) < 8 {
		t.Fatalf("only %d examples: %v", len(paths), err)
	}
	examples := map[string][]byte{}
	for _, path := range paths {
		if examples[strings.TrimSuffix(filepath.Base(path), ".json")], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return examples
}

const delivery = "72d3162e-cc78-11e3-81ab-4c9367dc0958"

var now = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// TestGitHubsOwnExamples: what GitHub gives as examples is taken, some minutes
// after it happened, and is ignored when it is of no use.
func TestGitHubsOwnExamples(t *testing.T) {
	for name, body := range exampleDeliveries(t) {
		t.Run(name, func(t *testing.T) {
			event, rest, _ := strings.Cut(name, ".")
			action, _, _ := strings.Cut(rest, ".")
			var times struct {
				Job struct {
					At time.Time `json:"started_at"`
				} `json:"workflow_job"`
				Run struct {
					At time.Time `json:"updated_at"`
				} `json:"workflow_run"`
			}
			if err := json.Unmarshal(body, &times); err != nil {
				t.Fatal(err)
			}
			at := times.Job.At
			if event == lifecycle.EventWorkflowRun {
				at = times.Run.At
			}
			w, err := webhook.Parse(event, delivery, body, at.Add(10*time.Minute))
			if action == "waiting" || action == "requested" {
				if !errors.Is(err, lifecycle.ErrWebhookIgnored) {
					t.Errorf("got %+v, %v", w, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if w.Action != action || w.RepositoryID == 0 || w.OwnerID == 0 || (w.Job == nil) == (w.Run == nil) {
				t.Errorf("got %+v", w)
			}
			if w.Job != nil && (w.Job.ID == 0 || w.Job.RunID == "" || w.Job.RunAttempt != 1 || w.Job.QueuedAt.IsZero() || len(w.Job.Labels) == 0) {
				t.Errorf("job: %+v", w.Job)
			}
		})
	}
}

func TestParseOfAJob(t *testing.T) {
	body := exampleDeliveries(t)["workflow_job.completed.1"]
	at := time.Date(2021, 8, 5, 10, 40, 0, 0, time.UTC)
	got, err := webhook.Parse("workflow_job", delivery, body, at)
	if err != nil {
		t.Fatal(err)
	}
	want := lifecycle.Webhook{
		DeliveryID: delivery, Action: "completed", RepositoryID: 186853002, OwnerID: 38302899, ReceivedAt: at,
		Job: &lifecycle.WorkflowJob{
			ID: 289782451, Repository: "Codertocat/Hello-World", RunID: "2202229078", RunAttempt: 1, Name: "linters", Workflow: "CodeQL", Labels: []string{"ubuntu-latest"},
			Status: "completed", Conclusion: "failure", RunnerName: "GitHub Actions 5", RunnerID: 5,
			QueuedAt:  time.Date(2021, 8, 5, 10, 33, 58, 0, time.UTC),
			StartedAt: time.Date(2021, 8, 5, 10, 34, 58, 0, time.UTC), CompletedAt: time.Date(2021, 8, 5, 10, 38, 16, 0, time.UTC),
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseOfARun(t *testing.T) {
	body := exampleDeliveries(t)["workflow_run.completed.2"]
	at := time.Date(2020, 10, 5, 16, 34, 0, 0, time.UTC)
	got, err := webhook.Parse("workflow_run", delivery, body, at)
	if err != nil {
		t.Fatal(err)
	}
	want := lifecycle.Webhook{
		DeliveryID: delivery, Action: "completed", RepositoryID: 300029405, OwnerID: 41548062, ReceivedAt: at,
		Run: &lifecycle.WorkflowRun{
			RunID: "289782451", RunAttempt: 1, Repository: "octo-org/octo-repo", RepositoryID: 300029405, OwnerID: 41548062, HeadRepositoryID: 300029405,
			Event: "repository_dispatch", HeadBranch: "master", Path: ".github/workflows/test.yml", Status: "completed", Conclusion: "success",
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A job and a run as GitHub sends them, of the fields that are read.
const (
	jobBody = `{"action":"queued","workflow_job":{"id":11,"run_id":7000000001,"run_attempt":2,"status":"queued","conclusion":null,
		"created_at":"2026-03-02T11:59:00Z","started_at":"2026-03-02T11:59:00Z","completed_at":null,"labels":["self-hosted","remuda-small"],
		"runner_id":null,"runner_name":null},"repository":{"id":5,"full_name":"acme/web","owner":{"id":6,"login":"acme"}}}`
	runBody = `{"action":"completed","workflow_run":{"id":7000000001,"run_attempt":2,"event":"push","head_branch":"main",
		"path":".github/workflows/ci.yml","status":"completed","conclusion":"success","created_at":"2026-03-02T11:00:00Z",
		"updated_at":"2026-03-02T11:59:30Z","head_repository":{"id":5}},"repository":{"id":5,"full_name":"acme/web","owner":{"id":6}}}`
)

// TestParseRefuses: each case changes one thing of a delivery that is fine.
func TestParseRefuses(t *testing.T) {
	long := strings.Repeat("x", 300)
	tests := []struct {
		name, event, old, new, field string
		future                       bool
	}{
		{"no object", "workflow_job", jobBody, `[]`, "body", false},
		{"cut off", "workflow_job", `"owner":{"id":6,"login":"acme"}}}`, ``, "body", false},
		{"two bodies", "workflow_job", jobBody, jobBody + jobBody, "body", false},
		{"no action", "workflow_job", `"queued","workflow_job"`, `"","workflow_job"`, "action", false},
		{"action", "workflow_job", `"queued","workflow_job"`, `"Queued!","workflow_job"`, "action", false},
		{"no job", "workflow_job", `"workflow_job"`, `"workflow_jobs"`, "workflow_job", false},
		{"job id", "workflow_job", `"id":11`, `"id":0`, "workflow_job.id", false},
		{"job id as a text", "workflow_job", `"id":11`, `"id":"11"`, "workflow_job.id", false},
		{"job id beyond 64 bits", "workflow_job", `"id":11`, `"id":11000000000000000000`, "workflow_job.id", false},
		{"run id", "workflow_job", `"run_id":7000000001`, `"run_id":-7`, "workflow_job.run_id", false},
		{"fraction of a run", "workflow_job", `"run_id":7000000001`, `"run_id":7.5`, "workflow_job.run_id", false},
		{"attempt 0", "workflow_job", `"run_attempt":2`, `"run_attempt":0`, "workflow_job.run_attempt", false},
		{"attempt 1001", "workflow_job", `"run_attempt":2`, `"run_attempt":1001`, "workflow_job.run_attempt", false},
		{"status", "workflow_job", `"status":"queued"`, `"status":""`, "workflow_job.status", false},
		{"conclusion", "workflow_job", `"conclusion":null`, `"conclusion":"a b"`, "workflow_job.conclusion", false},
		{"runner's name", "workflow_job", `"runner_name":null`, `"runner_name":"` + long + `"`, "workflow_job.runner_name", false},
		{"runner's name of two lines", "workflow_job", `"runner_name":null`, `"runner_name":"a\nb"`, "workflow_job.runner_name", false},
		{"labels", "workflow_job", `["self-hosted","remuda-small"]`, `"remuda-small"`, "workflow_job.labels", false},
		{"no time", "workflow_job", `"created_at":"2026-03-02T11:59:00Z","started_at":"2026-03-02T11:59:00Z"`, `"x":0`, "workflow_job.created_at", false},
		{"a time in words", "workflow_job", `"created_at":"2026-03-02T11:59:00Z"`, `"created_at":"noon"`, "workflow_job.created_at", false},
		{"queued in the future", "workflow_job", `"created_at":"2026-03-02T11:59:00Z"`, `"created_at":"2026-03-02T12:05:01Z"`, "workflow_job.created_at", true},
		{"started in the future", "workflow_job", `"started_at":"2026-03-02T11:59:00Z"`, `"started_at":"2026-03-02T12:05:01Z"`, "workflow_job.started_at", true},
		{"completed in the future", "workflow_job", `"completed_at":null`, `"completed_at":"2126-03-02T12:05:01Z"`, "workflow_job.completed_at", true},
		{"no repository", "workflow_job", `"full_name":"acme/web",`, ``, "repository.full_name", false},
		{"repository", "workflow_job", `acme/web`, `acme/web/x`, "repository.full_name", false},
		{"repository that is a path", "workflow_job", `acme/web`, `acme/..`, "repository.full_name", false},
		{"owner's name", "workflow_job", `acme/web`, strings.Repeat("a", 40) + "/web", "repository.full_name", false},
		{"repository's id", "workflow_job", `{"id":5,`, `{"id":0,`, "repository.id", false},
		{"owner's id", "workflow_job", `"owner":{"id":6`, `"owner":{"id":-6`, "repository.owner.id", false},
		{"no run", "workflow_run", `"workflow_run"`, `"workflow_runs"`, "workflow_run", false},
		{"id of the run", "workflow_run", `"id":7000000001`, `"id":0`, "workflow_run.id", false},
		{"attempt of the run", "workflow_run", `"run_attempt":2`, `"run_attempt":-2`, "workflow_run.run_attempt", false},
		{"event", "workflow_run", `"event":"push"`, `"event":"push me"`, "workflow_run.event", false},
		{"fork", "workflow_run", `"head_repository":{"id":5}`, `"head_repository":{"id":0}`, "workflow_run.head_repository.id", false},
		{"end", "workflow_run", `"updated_at":"2026-03-02T11:59:30Z"`, `"updated_at":null`, "workflow_run.updated_at", false},
		{"ended in the future", "workflow_run", `"updated_at":"2026-03-02T11:59:30Z"`, `"updated_at":"2026-03-02T12:05:01Z"`, "workflow_run.updated_at", true},
		{"began in the future", "workflow_run", `"created_at":"2026-03-02T11:00:00Z"`, `"created_at":"2026-03-02T12:05:01Z"`, "workflow_run.created_at", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, err := webhook.Parse(tt.event, delivery, []byte(changed(t, tt.event, tt.old, tt.new)), now)
			var wrong *webhook.Error
			if !errors.As(err, &wrong) {
				t.Fatalf("got %+v, %v", w, err)
			}
			if wrong.Field != tt.field || wrong.Future != tt.future || !strings.HasPrefix(err.Error(), "parse webhook: "+tt.field+" ") {
				t.Errorf("got %v (future: %t), want one of %s", err, wrong.Future, tt.field)
			}
			if d := cmp.Diff(lifecycle.Webhook{}, w); d != "" {
				t.Errorf("an error and a webhook: %s", d)
			}
		})
	}
}

// changed is the body of an event with one thing replaced.
func changed(t *testing.T, event, old, replacement string) string {
	t.Helper()
	body := jobBody
	if event == lifecycle.EventWorkflowRun {
		body = runBody
	}
	if strings.Count(body, old) != 1 {
		t.Fatalf("%q is in the body %d times", old, strings.Count(body, old))
	}
	return strings.Replace(body, old, replacement, 1)
}

func TestParseIgnores(t *testing.T) {
	tests := []struct{ name, event, old, new, why string }{
		{"a ping", "ping", jobBody, `{"zen":"Design for failure."}`, `events "ping" are of no use`},
		{"another event", "push", jobBody, `{}`, `events "push" are of no use`},
		{"an event of many letters", strings.Repeat("x", 10_000), jobBody, `{}`, `events "xxx`},
		{"a waiting job", "workflow_job", `"queued","workflow_job"`, `"waiting","workflow_job"`, "a job's action waiting brings nothing to do"},
		{"a run that begins", "workflow_run", `"action":"completed"`, `"action":"requested"`, "a run's action requested brings nothing to do"},
		{"a job that GitHub gave up", "workflow_job", `"created_at":"2026-03-02T11:59:00Z"`, `"created_at":"2026-01-25T11:59:59Z"`, "the job is of 2026-01-25T11:59:59Z, and GitHub ends a run after 35 days"},
		{"a run of long ago", "workflow_run", `"updated_at":"2026-03-02T11:59:30Z"`, `"updated_at":"2026-02-23T11:59:59Z"`, "the run ended at 2026-02-23T11:59:59Z, more than 7 days ago"},
		{"an empty label", "workflow_job", `["self-hosted","remuda-small"]`, `[""]`, "no runner has such labels"},
		{"a label that a terminal obeys", "workflow_job", `["self-hosted","remuda-small"]`, `["a\u001b[2J"]`, "no runner has such labels"},
		{"a long label", "workflow_job", `["self-hosted","remuda-small"]`, `["` + strings.Repeat("x", 257) + `"]`, "no runner has such labels"},
		{"many labels", "workflow_job", `["self-hosted","remuda-small"]`, `["x"` + strings.Repeat(`,"x"`, 64) + `]`, "no runner has such labels"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, err := webhook.Parse(tt.event, delivery, []byte(changed(t, tt.event, tt.old, tt.new)), now)
			if !errors.Is(err, lifecycle.ErrWebhookIgnored) || !strings.HasPrefix(err.Error(), "ignored: "+tt.why) || len(err.Error()) > 200 {
				t.Errorf("got %+v, %v", w, err)
			}
		})
	}
}

// TestParseAtItsBounds: what is just within the bounds is taken.
func TestParseAtItsBounds(t *testing.T) {
	tests := []struct{ name, event, old, new string }{
		{"as it is", "workflow_job", jobBody, jobBody},
		{"no attempt", "workflow_job", `"run_attempt":2`, `"run_attempt":null`},
		{"a clock ahead", "workflow_job", `"created_at":"2026-03-02T11:59:00Z"`, `"created_at":"2026-03-02T12:05:00Z"`},
		{"queued 25 hours ago", "workflow_job", `"created_at":"2026-03-02T11:59:00Z"`, `"created_at":"2026-03-01T11:00:00Z"`},
		{"an old job that begins", "workflow_job", jobBody, strings.NewReplacer(`"queued"`, `"in_progress"`, "2026-03-02", "2026-02-27").Replace(jobBody)},
		{"64 labels", "workflow_job", `["self-hosted","remuda-small"]`, `["x"` + strings.Repeat(`,"x"`, 63) + `]`},
		{"no labels", "workflow_job", `["self-hosted","remuda-small"]`, `[]`},
		{"a label of 256 bytes", "workflow_job", `remuda-small`, strings.Repeat("x", 256)},
		{"another status", "workflow_job", `"status":"queued"`, `"status":"waiting"`},
		{"a run of 7 days ago", "workflow_run", `"updated_at":"2026-03-02T11:59:30Z"`, `"updated_at":"2026-02-23T12:00:00Z"`},
		{"a deleted fork", "workflow_run", `"head_repository":{"id":5}`, `"head_repository":null`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, err := webhook.Parse(tt.event, delivery, []byte(changed(t, tt.event, tt.old, tt.new)), now)
			if err != nil {
				t.Errorf("got %+v, %v", w, err)
			}
		})
	}
}

// A job that waited for an approval was made long before it was queued, so its delivery is no old one for that.
func TestParseOfALateJob(t *testing.T) {
	for _, tt := range []struct {
		action, created string
		late            bool
	}{
		{"queued", "2026-03-01T11:00:00Z", false},
		{"queued", "2026-03-01T10:59:59Z", true},
		{"queued", "2026-01-31T12:00:00Z", true}, // after an approval of 30 days
		{"in_progress", "2026-01-31T12:00:00Z", false},
	} {
		body := strings.NewReplacer(`"action":"queued"`, `"action":"`+tt.action+`"`, `"created_at":"2026-03-02T11:59:00Z"`, `"created_at":"`+tt.created+`"`).Replace(jobBody)
		w, err := webhook.Parse("workflow_job", delivery, []byte(body), now)
		if err != nil || w.Late != tt.late {
			t.Errorf("%s of %s: late %t (%v), want %t", tt.action, tt.created, w.Late, err, tt.late)
		}
	}
}

// The status beside an action is another at times.
func TestParseWithAnotherStatus(t *testing.T) {
	for _, tt := range []struct{ action, status, want string }{
		{"queued", "queued", "queued"}, {"queued", "waiting", "queued"}, {"queued", "in_progress", "in_progress"}, {"queued", "completed", "completed"},
		{"in_progress", "queued", "in_progress"}, {"in_progress", "completed", "completed"}, {"completed", "queued", "completed"},
	} {
		body := strings.NewReplacer(`"action":"queued"`, `"action":"`+tt.action+`"`, `"status":"queued"`, `"status":"`+tt.status+`"`).Replace(jobBody)
		w, err := webhook.Parse("workflow_job", delivery, []byte(body), now)
		if err != nil || w.Action != tt.action || w.Job.Status != tt.want || w.Late {
			t.Errorf("%s and %s: got %+v, %v", tt.action, tt.status, w.Job, err)
		}
	}
	for status, late := range map[string]bool{"completed": false, "queued": true, "in_progress": true} {
		body := changed(t, "workflow_run", `"status":"completed"`, `"status":"`+status+`"`)
		w, err := webhook.Parse("workflow_run", delivery, []byte(body), now)
		if err != nil || w.Run.Status != "completed" || w.Late != late {
			t.Errorf("a completed run that is %s: got %+v, late: %t, %v", status, w.Run, w.Late, err)
		}
	}
	if _, err := webhook.Parse("workflow_run", delivery, []byte(changed(t, "workflow_run", `"status":"completed"`, `"status":""`)), now); err == nil {
		t.Error("a run without a status is taken")
	}
}

func TestParseWithoutCreation(t *testing.T) {
	body := changed(t, "workflow_job", `"created_at":"2026-03-02T11:59:00Z",`, "")
	w, err := webhook.Parse("workflow_job", delivery, []byte(body), now)
	if err != nil || !w.Job.QueuedAt.Equal(now.Add(-time.Minute)) {
		t.Errorf("got %+v, %v", w.Job, err)
	}
}

// What people choose and cannot be stored does not keep a run from its release.
func TestParseWithOddNames(t *testing.T) {
	for name, replacement := range map[string]string{
		"a long branch":         strings.Repeat("x", 2000),
		"a branch of two lines": `a\nb`,
	} {
		body := changed(t, "workflow_run", `"head_branch":"main"`, `"head_branch":"`+replacement+`"`)
		w, err := webhook.Parse("workflow_run", delivery, []byte(body), now)
		if err != nil || w.Run.HeadBranch != "" || w.Run.Path != ".github/workflows/ci.yml" {
			t.Errorf("%s: got %+v, %v", name, w.Run, err)
		}
	}
}

func TestDeliveryIDs(t *testing.T) {
	for id, fine := range map[string]bool{
		delivery: true, "1": true, strings.Repeat("A", 64): true,
		"": false, strings.Repeat("A", 65): false, "a b": false, "a\n": false, "../x": false, "é": false,
	} {
		_, err := webhook.Parse("workflow_job", id, []byte(jobBody), now)
		var wrong *webhook.Error
		if (err == nil) != fine || (err != nil && (!errors.As(err, &wrong) || wrong.Field != "delivery id")) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// FuzzParse: whatever is delivered, it does not panic, says one of the
// things that it may say, and what it takes is within the bounds.
func FuzzParse(f *testing.F) {
	for name, body := range exampleDeliveries(f) {
		event, _, _ := strings.Cut(name, ".")
		f.Add(event, delivery, trimmed(f, body))
	}
	f.Add("workflow_job", delivery, []byte(jobBody))
	f.Add("workflow_run", delivery, []byte(runBody))
	f.Add("ping", "1", []byte(`{"zen":"x","hook_id":1}`))
	f.Fuzz(func(t *testing.T, event, id string, body []byte) {
		w, err := webhook.Parse(event, id, body, now)
		var wrong *webhook.Error
		switch {
		case err == nil:
			checkWebhook(t, w)
		case !errors.Is(err, lifecycle.ErrWebhookIgnored) && !errors.As(err, &wrong):
			t.Fatalf("an error of no class: %v", err)
		case len(err.Error()) > 1000:
			t.Fatalf("an error of %d bytes", len(err.Error()))
		case strings.ContainsFunc(err.Error(), unicode.IsControl):
			t.Fatalf("not an error for people: %q", err)
		}
	})
}

// trimmed is a delivery without most of what is never read: the fuzzer spends its
// time on making large inputs smaller.
func trimmed(t testing.TB, body []byte) []byte {
	t.Helper()
	type object map[string]any
	var d struct {
		Action     string `json:"action"`
		Job        object `json:"workflow_job,omitempty"`
		Run        object `json:"workflow_run,omitempty"`
		Repository struct {
			ID       int64  `json:"id"`
			FullName string `json:"full_name"`
			Owner    struct {
				ID int64 `json:"id"`
			} `json:"owner"`
		} `json:"repository"`
	}
	if err := json.Unmarshal(body, &d); err != nil {
		t.Fatal(err)
	}
	for _, o := range []object{d.Job, d.Run} {
		maps.DeleteFunc(o, func(key string, value any) bool {
			_, nested := value.(map[string]any)
			return key == "steps" || strings.HasSuffix(key, "url") || nested
		})
	}
	out, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func checkWebhook(t *testing.T, w lifecycle.Webhook) {
	t.Helper()
	if w.DeliveryID == "" || w.RepositoryID <= 0 || w.OwnerID <= 0 || (w.Job == nil) == (w.Run == nil) {
		t.Fatalf("taken, and not complete: %+v", w)
	}
	if j := w.Job; j != nil {
		old := w.Action == "queued" && now.Sub(j.QueuedAt) > 25*time.Hour
		if j.ID <= 0 || j.RunID == "" || j.RunAttempt < 1 || j.RunAttempt > 1000 || len(j.Labels) > 64 || j.QueuedAt.IsZero() || old ||
			j.QueuedAt.Sub(now) > 5*time.Minute {
			t.Fatalf("taken, and out of bounds: %+v", j)
		}
	}
	if r := w.Run; r != nil && (w.Action != "completed" || r.RunID == "" || r.RunAttempt < 1 || strings.ContainsFunc(r.HeadBranch+r.Path, unicode.IsControl)) {
		t.Fatalf("taken, and out of bounds: %+v", r)
	}
}
