package web_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/telemetry"
	"github.com/remuda-ci/remuda/internal/web"
)

var _ web.Observer = (*telemetry.Metrics)(nil)

const (
	secret    = "It's a Secret to Everybody"
	newSecret = "and this one comes after it"
	id        = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
)

// noon is some minutes after GitHub's example was queued.
var noon = time.Date(2021, 9, 13, 2, 30, 0, 0, time.UTC)

// exampleJob is GitHub's own example of a queued job.
func exampleJob(t testing.TB) []byte {
	t.Helper()
	body, err := os.ReadFile("../githubsim/testdata/webhooks/workflow_job.queued.1.json")
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// desk is where deliveries end up. It knows the ids that it has seen.
type desk struct {
	mu       sync.Mutex
	seen     map[string]bool
	taken    []string // repository, run and job
	outcomes []string // event and outcome
	err      error
}

func (d *desk) take(_ context.Context, w lifecycle.Webhook) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.err != nil:
		return d.err
	case d.seen[w.DeliveryID]:
		return fmt.Errorf("create webhook: %w", lifecycle.ErrExists)
	}
	d.seen[w.DeliveryID] = true
	what := "run"
	if w.Job != nil {
		what = fmt.Sprint(w.Job.Repository, " ", w.Job.RunID, " ", w.Job.ID)
	}
	d.taken = append(d.taken, what)
	return nil
}

func (d *desk) Delivered(event, outcome string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outcomes = append(d.outcomes, event+" "+outcome)
}

// both gives two secrets, as while one is being replaced.
func both() ([]lifecycle.Secret, error) { return []lifecycle.Secret{secret, newSecret}, nil }

func (d *desk) options() web.Options {
	d.seen = map[string]bool{}
	return web.Options{Ready: isReady, Metrics: metrics(), Webhooks: &web.Webhooks{
		Secrets: both, Take: d.take, Observer: d, Now: func() time.Time { return noon },
	}}
}

func sign(body []byte, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// signedHeader is what GitHub sends with a body.
func signedHeader(body []byte) http.Header {
	return http.Header{
		"Content-Type": {"application/json"}, "X-Github-Event": {"workflow_job"}, "X-Github-Delivery": {id},
		"X-Hub-Signature-256": {sign(body, secret)},
	}
}

func send(t testing.TB, client *http.Client, method, url string, header http.Header, body io.Reader) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url+"/webhooks/github", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(text)), response.Header
}

// TestDeliveries: each case is a delivery that is fine except for one thing.
func TestDeliveries(t *testing.T) {
	job := exampleJob(t)
	with := func(body []byte, keys ...string) func(http.Header) {
		return func(h http.Header) {
			h.Set("X-Hub-Signature-256", sign(body, secret))
			for i := 0; i < len(keys); i += 2 {
				h.Set(keys[i], keys[i+1])
				if keys[i+1] == "" {
					h.Del(keys[i])
				}
			}
		}
	}
	replaced := func(old, replacement string) []byte { return bytes.Replace(job, []byte(old), []byte(replacement), 1) }
	future := replaced("2021-09-13T02:21:13Z", "2021-09-13T02:35:01Z")
	old := bytes.ReplaceAll(job, []byte("2021-09-13T02:21:13Z"), []byte("2021-09-12T01:29:59Z"))
	large := append(bytes.Clone(job), bytes.Repeat([]byte(" "), 1<<20-len(job))...)
	sha1Of := func(body []byte) string {
		mac := hmac.New(sha1.New, []byte(secret))
		mac.Write(body)
		return "sha1=" + hex.EncodeToString(mac.Sum(nil))
	}
	tests := []struct {
		name    string
		body    []byte
		header  func(http.Header)
		err     error
		status  int
		text    string
		outcome string
	}{
		{"fine", job, with(job), nil, 202, "accepted", "workflow_job accepted"},
		{"with the other secret", job, with(job, "X-Hub-Signature-256", sign(job, newSecret)), nil, 202, "accepted", "workflow_job accepted"},
		{"with a charset", job, with(job, "Content-Type", "application/json; charset=utf-8"), nil, 202, "accepted", "workflow_job accepted"},
		{"as large as may be", large, with(large), nil, 202, "accepted", "workflow_job accepted"},
		{"a ping", []byte(`{"zen":"x"}`), with([]byte(`{"zen":"x"}`), "X-GitHub-Event", "ping"), nil, 200, `ignored: events "ping" are of no use`, "other ignored"},
		{"not ours", job, with(job), fmt.Errorf("%w: no pool of ours", lifecycle.ErrWebhookIgnored), 200, "ignored: no pool of ours", "workflow_job ignored"},
		{"not ours, said the other way", job, with(job), fmt.Errorf("about no job of ours: %w", lifecycle.ErrWebhookIgnored), 200, "ignored: about no job of ours", "workflow_job ignored"},
		{"known", job, with(job), lifecycle.ErrExists, 200, "seen already", "workflow_job repeated"},
		{"the store is away", job, with(job), lifecycle.ErrUnavailable, 503, "cannot take it now", "workflow_job unavailable"},
		{"any other error", job, with(job), errors.New("table remuda-events has no room"), 503, "cannot take it now", "workflow_job unavailable"},

		{"unsigned", job, with(job, "X-Hub-Signature-256", ""), nil, 401, "X-Hub-Signature-256 is missing", "workflow_job unsigned"},
		{"SHA-1 alone", job, with(job, "X-Hub-Signature-256", "", "X-Hub-Signature", sha1Of(job)), nil, 401, "X-Hub-Signature-256 is missing", "workflow_job unsigned"},
		{"SHA-1 in the place of the other", job, with(job, "X-Hub-Signature-256", sha1Of(job)), nil, 401, "X-Hub-Signature-256 is missing", "workflow_job unsigned"},
		{"half a signature", job, with(job, "X-Hub-Signature-256", sign(job, secret)[:39]), nil, 401, "X-Hub-Signature-256 is missing", "workflow_job unsigned"},
		{"a signature but for its end", job, with(job, "X-Hub-Signature-256", sign(job, secret)[:70]+"0"), nil, 401, "the signature is not that of this body", "workflow_job forged"},
		{"a signature that says not which", job, with(job, "X-Hub-Signature-256", strings.TrimPrefix(sign(job, secret), "sha256=")), nil, 401, "X-Hub-Signature-256 is missing", "workflow_job unsigned"},
		{"another secret", job, with(job, "X-Hub-Signature-256", sign(job, "guess")), nil, 401, "the signature is not that of this body", "workflow_job forged"},
		{"an empty secret", job, with(job, "X-Hub-Signature-256", sign(job, "")), nil, 401, "the signature is not that of this body", "workflow_job forged"},
		{"a truncated body", job[:len(job)-1], with(job), nil, 401, "the signature is not that of this body", "workflow_job forged"},
		{"another body", replaced("Hello-World", "Hello-Wurld"), with(job), nil, 401, "the signature is not that of this body", "workflow_job forged"},
		{"one byte too large", append(large, ' '), with(large), nil, 413, "more than 1048576 bytes", "workflow_job oversized"},
		{"a form", job, with(job, "Content-Type", "application/x-www-form-urlencoded"), nil, 415, "choose the content type application/json", "workflow_job content_type"},
		{"no content type", job, with(job, "Content-Type", ""), nil, 415, "choose the content type application/json", "workflow_job content_type"},

		{"malformed", job[:100], with(job[:100]), nil, 400, "parse webhook: body is not one JSON object", "workflow_job malformed"},
		{"no delivery id", job, with(job, "X-GitHub-Delivery", ""), nil, 400, "parse webhook: delivery id is not", "workflow_job malformed"},
		{"of the future", future, with(future), nil, 400, "parse webhook: workflow_job.created_at is more than 5m0s ahead", "workflow_job future"},
		{"an old one under a new id", old, with(old, "X-GitHub-Delivery", "new"), nil, 202, "accepted", "workflow_job accepted"}, // it may have waited for an approval: GitHub is asked
		{"another event", job, with(job, "X-GitHub-Event", strings.Repeat("x", 1000)), nil, 200, "ignored: ", "other ignored"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := &desk{err: test.err}
			_, url := start(t, d.options())
			header := signedHeader(job)
			test.header(header)
			status, text, got := send(t, http.DefaultClient, "POST", url, header, bytes.NewReader(test.body))
			if status != test.status || !strings.HasPrefix(text, test.text) || len(text) > 300 {
				t.Errorf("got %d %q, want %d %q", status, text, test.status, test.text)
			}
			if (got.Get("Retry-After") != "") != (status == 503) {
				t.Errorf("%d with Retry-After: %q", status, got.Get("Retry-After"))
			}
			if (len(d.taken) == 1) != (status == 202) {
				t.Errorf("taken: %v", d.taken)
			}
			if diff := cmp.Diff([]string{test.outcome}, d.outcomes); diff != "" {
				t.Errorf("counted: %s", diff)
			}
		})
	}
}

// TestGitHubsOwnSignature: the example of GitHub's documentation, "Validating
// webhook deliveries", is authentic; it is no delivery.
func TestGitHubsOwnSignature(t *testing.T) {
	d := &desk{}
	_, url := start(t, d.options())
	header := signedHeader(nil)
	header.Set("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
	if status, text, _ := send(t, http.DefaultClient, "POST", url, header, strings.NewReader("Hello, World!")); status != 400 {
		t.Errorf("got %d %q", status, text)
	}
}

// TestChunkedBodies: a body that does not say how long it is, is bounded too.
func TestChunkedBodies(t *testing.T) {
	job := exampleJob(t)
	large := append(bytes.Clone(job), bytes.Repeat([]byte(" "), 1<<20)...)
	for _, test := range []struct {
		name   string
		body   []byte
		status int
	}{{"fine", job, 202}, {"oversized", large, 413}} {
		t.Run(test.name, func(t *testing.T) {
			d := &desk{}
			_, url := start(t, d.options())
			body := struct{ io.Reader }{bytes.NewReader(test.body)} // its length is hidden from the client
			if status, text, _ := send(t, http.DefaultClient, "POST", url, signedHeader(test.body), body); status != test.status {
				t.Errorf("got %d %q", status, text)
			}
			if (len(d.taken) == 1) != (test.status == 202) {
				t.Errorf("taken: %v", d.taken)
			}
		})
	}
}

// TestADeclaredSize: who says that the body is too large is refused before it
// comes.
func TestADeclaredSize(t *testing.T) {
	d := &desk{}
	_, url := start(t, d.options())
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nX-Hub-Signature-256: %s\r\n\r\n",
		1<<20+1, sign(nil, secret))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 413 {
		t.Errorf("got %s", response.Status)
	}
}

func TestReplayedDelivery(t *testing.T) {
	d := &desk{}
	_, url := start(t, d.options())
	job := exampleJob(t)
	for _, want := range []string{"202 accepted", "200 seen already", "200 seen already"} {
		status, text, _ := send(t, http.DefaultClient, "POST", url, signedHeader(job), bytes.NewReader(job))
		if got := fmt.Sprint(status, " ", text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if diff := cmp.Diff([]string{"Codertocat/Hello-World 2202229078 289782451"}, d.taken); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyPost(t *testing.T) {
	d := &desk{}
	_, url := start(t, d.options())
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		status, _, header := send(t, http.DefaultClient, method, url, signedHeader(nil), nil)
		if status != 405 || header.Get("Allow") != "POST" {
			t.Errorf("%s: got %d, allowed: %q", method, status, header.Get("Allow"))
		}
	}
	if status, body, _ := call(t, "GET", url+"/healthz"); status != 200 || body != "alive" {
		t.Errorf("beside it: %d %q", status, body)
	}
	if len(d.taken) != 0 {
		t.Errorf("taken: %v", d.taken)
	}
}

// TestBodiesElsewhere: what is no delivery keeps its own, small bound.
func TestBodiesElsewhere(t *testing.T) {
	for name, hooks := range map[string]*web.Webhooks{"with webhooks": (&desk{}).options().Webhooks, "without": nil} {
		read := make(chan error, 1)
		_, url := start(t, web.Options{Ready: isReady, Webhooks: hooks, Metrics: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
		})})
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/metrics", strings.NewReader(strings.Repeat("x", 2<<10)))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		var long *http.MaxBytesError
		if err := <-read; !errors.As(err, &long) || long.Limit != 1<<10 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoSecretNoStart(t *testing.T) {
	take := func(context.Context, lifecycle.Webhook) error { return nil }
	give := func(secrets ...lifecycle.Secret) web.SecretSource {
		return func() ([]lifecycle.Secret, error) { return secrets, nil }
	}
	fails := func() ([]lifecycle.Secret, error) { return nil, errors.New("gone") }
	for name, hooks := range map[string]web.Webhooks{
		"no source":          {Take: take},
		"no secret":          {Take: take, Secrets: give()},
		"an empty secret":    {Take: take, Secrets: give("")},
		"an empty one more":  {Take: take, Secrets: give(secret, "")},
		"a source at fault":  {Take: take, Secrets: fails},
		"an empty file":      {Take: take, Secrets: web.SecretFile(os.DevNull)},
		"an unset variable":  {Take: take, Secrets: web.SecretVariable("REMUDA_NO_SUCH_SECRET")},
		"without a receiver": {Secrets: both},
	} {
		if _, err := web.New(web.Options{Ready: isReady, Metrics: metrics(), Webhooks: &hooks}); err == nil || !strings.Contains(err.Error(), "webhooks: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSecretsThatGoAway: without secrets no delivery is let in, whatever the body is
// signed with, and GitHub sees that the delivery failed.
func TestSecretsThatGoAway(t *testing.T) {
	job := exampleJob(t)
	for name, later := range map[string][]lifecycle.Secret{"none": {}, "an empty one": {""}} {
		d := &desk{}
		o := d.options()
		now := []lifecycle.Secret{secret}
		o.Webhooks.Secrets = func() ([]lifecycle.Secret, error) { return now, nil }
		_, url := start(t, o)
		now = later
		header := signedHeader(job)
		header.Set("X-Hub-Signature-256", sign(job, ""))
		if status, text, _ := send(t, http.DefaultClient, "POST", url, header, bytes.NewReader(job)); status != 503 || text != "cannot check signatures now" {
			t.Errorf("%s: got %d %q", name, status, text)
		}
		if len(d.taken) != 0 {
			t.Errorf("%s: taken: %v", name, d.taken)
		}
	}
}

// TestTheLogSaysNothingOfBodies but the keys by which to find the rest, and
// nothing at all of what is not signed.
func TestTheLogSaysNothingOfBodies(t *testing.T) {
	job := exampleJob(t)
	bad := bytes.Replace(job, []byte(`"action": "queued"`), []byte(`"action": "SECRET WORD"`), 1)
	if bytes.Equal(job, bad) {
		t.Fatal("the example has changed")
	}
	for name, test := range map[string]struct {
		body      []byte
		signature string
		want      []string
	}{
		"taken":     {job, sign(job, secret), []string{id, "Codertocat/Hello-World", "2202229078", "289782451", "queued", "accepted"}},
		"malformed": {bad, sign(bad, secret), []string{"malformed", "field=action"}},
		"unsigned":  {job, "", []string{"unsigned"}},
		"forged":    {job, sign(job, "guess"), []string{"forged"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			o := (&desk{}).options()
			o.Log = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace, Mutex: new(sync.Mutex)})
			s, url := start(t, o)
			header := signedHeader(job)
			header.Set("X-Hub-Signature-256", test.signature)
			send(t, http.DefaultClient, "POST", url, header, bytes.NewReader(test.body))
			s.Stop(context.Background())
			for _, want := range test.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("%q is missing in %s", want, log.String())
				}
			}
			for _, never := range []string{"SECRET", "ubuntu-latest", secret, "guess", strings.TrimPrefix(test.signature+" ", "sha256=")} {
				if strings.Contains(log.String(), strings.TrimSpace(never)) && strings.TrimSpace(never) != "" {
					t.Errorf("%q is in %s", never, log.String())
				}
			}
			if name == "unsigned" || name == "forged" {
				for _, never := range []string{id, "Codertocat", "289782451"} {
					if strings.Contains(log.String(), never) {
						t.Errorf("%q is in %s", never, log.String())
					}
				}
			}
		})
	}
}
