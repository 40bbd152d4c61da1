package firstcontact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/retry"
)

// gitHub makes the calls of the REST API, with nothing between them and what GitHub answers: no cache and no client library.
type gitHub struct {
	api, repository, token string
	client                 *http.Client
	// away is the first call without an answer. After it no call is made, since each could take callLimit.
	away error
}

// callLimit bounds one call with its answer; a download takes longer and has its own.
const callLimit = 30 * time.Second

func newGitHub(o Options) *gitHub {
	return &gitHub{api: o.APIURL, repository: o.Repository, token: o.Token, client: &http.Client{Transport: o.Transport}}
}

// answerError is an answer other than success.
type answerError struct {
	call    string
	status  int
	message string
	after   time.Duration // GitHub's Retry-After; 0: none
	foreign *foreignError // the answer, if it is no JSON
}

func (e *answerError) Error() string {
	if e.foreign != nil {
		return fmt.Sprintf("%s: %d %s: %v", e.call, e.status, http.StatusText(e.status), e.foreign)
	}
	return fmt.Sprintf("%s: %d %s: %s", e.call, e.status, http.StatusText(e.status), e.message)
}

func (e *answerError) Unwrap() error {
	if e.foreign == nil {
		return nil
	}
	return e.foreign
}

// statusOf is the status of the answer that an error stands for; 0: there was none.
func statusOf(err error) int {
	var e *answerError
	if errors.As(err, &e) {
		return e.status
	}
	return 0
}

// unless is the error, except when it is an answer with one of the statuses.
func unless(err error, statuses ...int) error {
	if slices.Contains(statuses, statusOf(err)) {
		return nil
	}
	return err
}

// tries is how often a call is made that GitHub is too busy for.
const tries = 4

// call makes a call below the repository, and decodes the answer into into unless that is nil. A *[]byte gets it as it is.
func (g *gitHub) call(ctx context.Context, method, path string, body, into any) error {
	for try := 1; ; try++ {
		if g.away != nil {
			return g.away
		}
		err := g.once(ctx, method, path, body, into)
		if isUnreached(err) {
			g.away = err
		}
		var e *answerError
		if !errors.As(err, &e) || try == tries || e.status < 500 && e.after == 0 {
			return err
		}
		if err := retry.Sleep(ctx, max(e.after, time.Second)); err != nil {
			return err
		}
	}
}

func (g *gitHub) once(ctx context.Context, method, path string, body, into any) error {
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	r, err := g.request(limited, method, path, body)
	if err != nil {
		return err
	}
	resp, err := g.client.Do(r)
	if err != nil {
		return unreached(ctx, g.api, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return unreached(ctx, g.api, fmt.Errorf("read answer: %w", err))
	}
	if resp.StatusCode >= 300 {
		return refusal(method+" /repos/"+g.repository+path, resp, text)
	}
	if err := decode(text, into); err != nil {
		return fmt.Errorf("%s /repos/%s%s: %w", method, g.repository, path, err)
	}
	return nil
}

func (g *gitHub) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		sent = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, g.api+"/repos/"+g.repository+path, sent)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+g.token)
	r.Header.Set("Accept", "application/vnd.github+json")
	r.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

func refusal(call string, resp *http.Response, text []byte) error {
	e := &answerError{call: call, status: resp.StatusCode}
	var problem struct{ Message string }
	if err := json.Unmarshal(text, &problem); err != nil && len(bytes.TrimSpace(text)) > 0 {
		e.foreign = &foreignError{text}
	}
	e.message = problem.Message
	if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.after = time.Duration(after) * time.Second
	}
	return e
}

// foreignError is an answer that is no JSON, such as the page of a proxy.
type foreignError struct{ text []byte }

func (e *foreignError) Error() string {
	return fmt.Sprintf("the answer is not GitHub's, but %.120q: check --api-url and the proxy", strings.Join(strings.Fields(string(e.text)), " "))
}

// firstRefusal says what an error of the first call, which asks for a registration token, means.
func (g *gitHub) firstRefusal(err error) error {
	var foreign *foreignError
	switch {
	case isUnreached(err), errors.As(err, &foreign):
		return err
	case statusOf(err) >= 500:
		return fmt.Errorf("GitHub fails: %w", err)
	case statusOf(err) == http.StatusNotFound:
		return fmt.Errorf("there is no repository %s, or the token may not see it: %w", g.repository, err)
	}
	return fmt.Errorf("the token cannot register a runner: %w", err)
}

func decode(text []byte, into any) error {
	switch into := into.(type) {
	case nil:
		return nil
	case *[]byte:
		*into = text
		return nil
	}
	if !json.Valid(text) {
		return &foreignError{text}
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}

// site is the address of the repository or organization pages, for config.sh.
func (g *gitHub) site() string {
	u, err := url.Parse(g.api)
	if err != nil {
		return g.api
	}
	u.Path, u.Host = strings.TrimSuffix(u.Path, "/api/v3"), strings.TrimPrefix(u.Host, "api.")
	return strings.TrimRight(u.String(), "/") + "/" + g.repository
}

// token is a registration or remove token.
type token struct {
	Token     string
	ExpiresAt time.Time `json:"expires_at"`
}

func (g *gitHub) registrationToken(ctx context.Context) (t token, err error) {
	return t, g.call(ctx, "POST", "/actions/runners/registration-token", nil, &t)
}

func (g *gitHub) removeToken(ctx context.Context) (t token, err error) {
	return t, g.call(ctx, "POST", "/actions/runners/remove-token", nil, &t)
}

// registered is a runner as GitHub has it.
type registered struct {
	ID     int64
	Name   string
	Status string
	Busy   bool
	Labels []struct{ Name, Type string }
}

// labels are its labels, sorted.
func (r registered) labels() []string {
	var names []string
	for _, l := range r.Labels {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	return names
}

func (g *gitHub) runner(ctx context.Context, id int64) (r registered, err error) {
	return r, g.call(ctx, "GET", fmt.Sprintf("/actions/runners/%d", id), nil, &r)
}

// runners are the first hundred of the repository; a repository for checks has fewer.
func (g *gitHub) runners(ctx context.Context) ([]registered, error) {
	var list struct{ Runners []registered }
	return list.Runners, g.call(ctx, "GET", "/actions/runners?per_page=100", nil, &list)
}

func (g *gitHub) runnersNamed(ctx context.Context, name string) ([]registered, error) {
	var list struct{ Runners []registered }
	return list.Runners, g.call(ctx, "GET", "/actions/runners?name="+url.QueryEscape(name), nil, &list)
}

func (g *gitHub) deleteRunner(ctx context.Context, id int64) error {
	return g.call(ctx, "DELETE", fmt.Sprintf("/actions/runners/%d", id), nil, nil)
}

func (g *gitHub) setLabels(ctx context.Context, id int64, labels ...string) error {
	return g.call(ctx, "PUT", fmt.Sprintf("/actions/runners/%d/labels", id), map[string]any{"labels": labels}, nil)
}

// justInTime is the answer that makes a just-in-time runner.
type justInTime struct {
	Runner registered
	Config string `json:"encoded_jit_config"`
}

func (g *gitHub) justInTime(ctx context.Context, name string, labels ...string) (j justInTime, err error) {
	return j, g.call(ctx, "POST", "/actions/runners/generate-jitconfig", map[string]any{"name": name, "runner_group_id": 1, "labels": labels}, &j)
}

// workflowRun is a run as GitHub has it.
type workflowRun struct {
	ID         int64
	Status     string
	Conclusion string
}

func (g *gitHub) run(ctx context.Context, id int64) (r workflowRun, err error) {
	return r, g.call(ctx, "GET", fmt.Sprintf("/actions/runs/%d", id), nil, &r)
}

func (g *gitHub) runsOf(ctx context.Context, sha string) ([]workflowRun, error) {
	var list struct {
		Runs []workflowRun `json:"workflow_runs"`
	}
	return list.Runs, g.call(ctx, "GET", "/actions/runs?head_sha="+sha, nil, &list)
}

func (g *gitHub) cancelRun(ctx context.Context, id int64) error {
	return g.call(ctx, "POST", fmt.Sprintf("/actions/runs/%d/cancel", id), nil, nil)
}

func (g *gitHub) deleteRun(ctx context.Context, id int64) error {
	return g.call(ctx, "DELETE", fmt.Sprintf("/actions/runs/%d", id), nil, nil)
}

// job is the only job of a run.
type job struct {
	ID         int64
	Status     string
	Conclusion string
	RunnerName string `json:"runner_name"`
}

func (g *gitHub) jobOf(ctx context.Context, run int64) (j job, err error) {
	var list struct{ Jobs []job }
	if err := g.call(ctx, "GET", fmt.Sprintf("/actions/runs/%d/jobs", run), nil, &list); err != nil || len(list.Jobs) == 0 {
		return j, err
	}
	return list.Jobs[0], nil
}

// logOf is the log of a completed job.
func (g *gitHub) logOf(ctx context.Context, job int64) (string, error) {
	var text []byte
	err := g.call(ctx, "GET", fmt.Sprintf("/actions/jobs/%d/logs", job), nil, &text)
	return string(text), err
}

// pushFile makes a branch at a commit that has no parent and one file, and returns the commit's SHA. With nothing else in the commit
// no other workflow of the repository runs.
func (g *gitHub) pushFile(ctx context.Context, branch, path, content string) (string, error) {
	var tree, commit struct{ SHA string }
	err := g.call(ctx, "POST", "/git/trees", map[string]any{"tree": []any{
		map[string]any{"path": path, "mode": "100644", "type": "blob", "content": content},
	}}, &tree)
	if err == nil {
		err = g.call(ctx, "POST", "/git/commits", map[string]any{"message": "Check what Remuda assumes", "tree": tree.SHA}, &commit)
	}
	if err == nil {
		err = g.call(ctx, "POST", "/git/refs", map[string]any{"ref": "refs/heads/" + branch, "sha": commit.SHA}, nil)
	}
	return commit.SHA, err
}

func (g *gitHub) deleteBranch(ctx context.Context, branch string) error {
	return g.call(ctx, "DELETE", "/git/refs/heads/"+branch, nil, nil)
}
