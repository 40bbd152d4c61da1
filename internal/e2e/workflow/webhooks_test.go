package workflow_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// fleetByWebhook is a workflow whose hosts come with its job.
const fleetByWebhook = `on: push
jobs:
  work:
    runs-on: ["${{ github.run_id }}", remuda-large]
    steps: [{run: 'true'}]
`

// TestWebhooksThatAreRefused: a delivery that brings a host brings none when it
// is not as GitHub sends it, and one however often it comes.
func TestWebhooksThatAreRefused(t *testing.T) {
	s := newStage(t)
	genuine := s.record("5001")
	forged := "sha256=" + sign(sha256.New, "guessed", genuine.body)
	wide := append(bytes.Repeat([]byte(" "), 1<<20), genuine.body...)
	ahead := later(t, genuine.body, 10*time.Minute)
	for name, test := range map[string]struct {
		delivery delivery
		status   int
	}{
		"unsigned":       {genuine.with("X-Hub-Signature-256", "").with("X-Hub-Signature", ""), http.StatusUnauthorized},
		"SHA-1 only":     {genuine.with("X-Hub-Signature-256", "").with("X-Hub-Signature", "sha1="+sign(sha1.New, secret, genuine.body)), http.StatusUnauthorized},
		"SHA-1 as 256":   {genuine.with("X-Hub-Signature-256", "sha1="+sign(sha1.New, secret, genuine.body)), http.StatusUnauthorized},
		"another secret": {genuine.with("X-Hub-Signature-256", forged), http.StatusUnauthorized},
		"another body":   {genuine.carrying(append(bytes.Clone(genuine.body), ' ')), http.StatusUnauthorized},
		"oversized":      {genuine.carrying(wide).signed(), http.StatusRequestEntityTooLarge},
		"future":         {genuine.carrying(ahead).signed(), http.StatusBadRequest},
		"no JSON":        {genuine.with("Content-Type", "application/x-www-form-urlencoded"), http.StatusUnsupportedMediaType},
		"cut short":      {genuine.carrying(genuine.body[:len(genuine.body)/2]).signed(), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			if code, text := s.post(test.delivery); code != test.status {
				t.Errorf("status %d (%s), want %d", code, text, test.status)
			}
		})
	}
	s.nothingProvisioned()

	if code, text := s.post(genuine); code != http.StatusAccepted {
		t.Fatalf("the genuine delivery: status %d (%s)", code, text)
	}
	s.succeeds("5001")
	s.eventually(func() string {
		for _, i := range s.hosts() {
			if i.GetState() == remudav1.State_STATE_RUNNING {
				return ""
			}
		}
		return "no host is ready, by controld's word"
	})
	if code, text := s.post(genuine); code != http.StatusOK || text != "seen already" {
		t.Errorf("the delivery again: status %d (%s)", code, text)
	}
	if code, text := s.post(genuine.with("X-GitHub-Delivery", "another-id-for-it")); code != http.StatusAccepted {
		t.Errorf("the delivery again under another id: status %d (%s)", code, text)
	}
	s.eventually(func() string {
		if n := strings.Count(s.log.String(), `"webhook worked on"`); n != 2 {
			return "one of the two deliveries that were accepted has not been worked on"
		}
		return ""
	})
	if got, err := s.admin.ListInstances(s.ctx, &remudav1.ListInstancesRequest{}); err != nil || len(got.GetInstances()) != 1 {
		t.Errorf("%d hosts, want the one of the genuine delivery: %v", len(got.GetInstances()), err)
	}
}

// delivery is one of GitHub's.
type delivery struct {
	header http.Header
	body   []byte
}

// with is the delivery with another header; "" takes it away.
func (d delivery) with(name, value string) delivery {
	d.header = d.header.Clone()
	d.header.Set(name, value)
	if value == "" {
		d.header.Del(name)
	}
	return d
}

func (d delivery) carrying(body []byte) delivery { return delivery{d.header, body} }

// signed is the delivery as one who knows the secret would sign it.
func (d delivery) signed() delivery {
	return d.with("X-Hub-Signature-256", "sha256="+sign(sha256.New, secret, d.body))
}

func sign(h func() hash.Hash, key string, body []byte) string {
	mac := hmac.New(h, []byte(key))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// later is a body whose times are all that of a moment to come.
func later(t *testing.T, body []byte, ahead time.Duration) []byte {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal(body, &content); err != nil {
		t.Fatal(err)
	}
	job, isJob := content["workflow_job"].(map[string]any)
	if !isJob {
		t.Fatalf("no workflow_job in %s", body)
	}
	job["created_at"] = time.Now().Add(ahead).UTC().Format(time.RFC3339)
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// record starts a run and returns the delivery about its job.
func (s *stage) record(runID string) delivery {
	s.Helper()
	heard := make(chan delivery, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.Header.Get("X-GitHub-Event") == "workflow_job" {
			select {
			case heard <- delivery{r.Header.Clone(), body}:
			default: // only the first is wanted
			}
		}
	}))
	defer server.Close()
	if err := s.github.SetWebhooks(s.ctx, local.Webhooks{Target: server.URL, Secret: secret}); err != nil {
		s.Fatal(err)
	}
	if _, err := s.github.StartRun(s.ctx, hooked, runID, fleetByWebhook); err != nil {
		s.Fatal(err)
	}
	defer func() {
		if err := s.github.SetWebhooks(s.ctx, local.Webhooks{}); err != nil {
			s.Error(err)
		}
	}()
	select {
	case d := <-heard:
		return d
	case <-s.ctx.Done():
		s.Fatal("the stand-in told of no job")
		return delivery{}
	}
}

func (s *stage) post(d delivery) (code int, text string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.hookURL(), bytes.NewReader(d.body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header = d.header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(answer))
}
