package github_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/delivery"
)

// FuzzAnswers: whatever stands between us and GitHub may answer in its place.
// It can only make a call fail, with an error of a known class and one line, and
// after two hours the client is not held up by it any more.
func FuzzAnswers(f *testing.F) {
	f.Add(200, `{"id":7,"guid":"x","request":{"payload":{}},"workflow_runs":[{"id":1}],"jobs":[null]}`, "1", "0", "0", "-1", `<http://localhost/?page=2>; rel="next"`, `"tag"`)
	f.Add(201, `{"token":"t","expires_at":"2030-01-01T00:00:00Z","runner":{"id":1},"encoded_jit_config":"c"}`, "", "5000", "4999", "99999999999", `<?cursor=x>; rel=next`, "")
	f.Add(403, `{"message":"secondary rate limit"}`, "99999999999999999999", "5000", "x", "", "", "")
	f.Add(429, ``, "Fri, 31 Dec 9999 23:59:59 GMT", "5000", "0", "9223372036854775807", "", "")
	f.Add(201, `{"token":"t","expires_at":"2030-01-01T00:00:00Z"}`, "\xd3", "5000", "4%99", "99999999999", "", "!l=\xc8Z\xad")
	f.Add(304, ``, "", "", "", "", "", "x")
	f.Add(409, `[null]`, "0", "1", "1", "946688400", "", "")
	f.Fuzz(func(t *testing.T, status int, body, retry, limit, remaining, reset, link, tag string) {
		if status < 200 || status > 599 {
			return
		}
		headers := map[string]string{"Retry-After": retry, "X-RateLimit-Limit": limit, "X-RateLimit-Remaining": remaining,
			"X-RateLimit-Reset": reset, "Link": link, "ETag": tag, "Location": link}
		synctest.Test(t, func(t *testing.T) {
			server := newFake("a")
			apps := server.withApps(1)
			spoilt := true
			server.before = func(w http.ResponseWriter, _ *http.Request) bool {
				if !spoilt {
					return false
				}
				for name, value := range headers {
					if value != "" {
						w.Header().Set(name, value)
					}
				}
				answer(w, status, body)
				return true
			}
			for _, c := range []*github.Client{
				newClient(t, github.Config{Transport: direct{server}}),
				newClient(t, github.Config{Transport: direct{server}, Apps: apps, Organization: true, RunnerGroup: "g"}),
			} {
				spoilt = true
				askEverything(t, c)
				spoilt = false
				time.Sleep(121 * time.Minute)
				if _, err := c.FindRunner(t.Context(), "acme/app", "a"); err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
					t.Errorf("it is held up for ever: %v", err)
				}
			}
		})
	})
}

func askEverything(t *testing.T, c *github.Client) {
	ctx := t.Context()
	_, _, jit := c.JIT(ctx, "acme/app", "x", []string{"l"})
	_, register := c.RegistrationToken(ctx, "acme/app")
	_, list := c.Runners(ctx, "acme/app", lifecycle.PageOf{})
	_, run := c.WorkflowRun(ctx, "acme/app", "7")
	_, job := c.WorkflowJob(ctx, "acme/app", 7)
	_, queued := c.QueuedJobs(ctx, "acme/app")
	_, missed := c.MissedDeliveries(ctx, time.Time{})
	_, payload := c.DeliveryPayload(ctx, delivery.Missed{ID: 7, DeliveryID: "x"})
	_, releases := c.RunnerReleases(ctx)
	for _, err := range []error{jit, register, list, run, job, queued, missed, payload, releases, c.DeleteRunner(ctx, "acme/app", 7)} {
		if err == nil {
			continue
		}
		known := false
		for _, class := range []error{lifecycle.ErrUnavailable, lifecycle.ErrRefused, lifecycle.ErrNotFound, lifecycle.ErrBusy} {
			known = known || errors.Is(err, class)
		}
		if !known {
			t.Errorf("of no class: %v", err)
		}
		if wait := waitOf(err); wait > 2*time.Hour {
			t.Errorf("wait %s: %v", wait, err)
		}
		if strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("more than one line: %q", err)
		}
	}
}
