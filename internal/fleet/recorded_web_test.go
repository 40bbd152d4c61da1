package fleet_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/web"
)

// dayWeb is the web server of controld in a recorded day, and GitHub's way to it.
type dayWeb struct {
	client *http.Client
	// secret signs the deliveries.
	secret lifecycle.Secret
}

const daySecret lifecycle.Secret = "that of the webhook"

func newDayWeb(t *testing.T, d *recordedDay) *dayWeb {
	t.Helper()
	s, err := web.New(web.Options{
		Ready: func(context.Context) error { return nil }, Metrics: d.scrapes.metrics.Handler(),
		Webhooks: &web.Webhooks{
			Secrets: func() ([]lifecycle.Secret, error) { return []lifecycle.Secret{daySecret}, nil }, Observer: d.scrapes.metrics,
			Take: func(ctx context.Context, w lifecycle.Webhook) error { return d.fleet.TakeWebhook(ctx, w, time.Now()) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 20)
	go func() {
		if err := s.Serve(listener); err != nil {
			t.Error(err)
		}
	}()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) }}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Stop(context.Background())
	})
	return &dayWeb{client: &http.Client{Transport: transport}, secret: daySecret}
}

// deliver sends a webhook about a job as GitHub does: signed, in JSON. What comes of it is in the metrics.
func (w *dayWeb) deliver(ctx context.Context, h lifecycle.Webhook) error {
	body, err := json.Marshal(map[string]any{
		"action": h.Action, "workflow_job": jobJSON(h.Job),
		"repository": map[string]any{"id": h.RepositoryID, "full_name": h.Job.Repository, "owner": map[string]any{"id": h.OwnerID}},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://controld/webhooks/github", bytes.NewReader(body))
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, []byte(w.secret))
	mac.Write(body)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "X-GitHub-Event": lifecycle.EventWorkflowJob, "X-GitHub-Delivery": h.DeliveryID,
		"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	} {
		request.Header.Set(name, value)
	}
	answer, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the delivery got %s", answer.Status)
	}
	return nil
}

func jobJSON(j *lifecycle.WorkflowJob) map[string]any {
	runID, _ := strconv.ParseInt(j.RunID, 10, 64) // the hub's own
	job := map[string]any{
		"id": j.ID, "run_id": runID, "run_attempt": j.RunAttempt, "name": j.Name, "labels": j.Labels, "status": j.Status,
		"runner_name": j.RunnerName, "runner_id": j.RunnerID,
	}
	if j.Conclusion != "" {
		job["conclusion"] = j.Conclusion
	}
	for name, at := range map[string]time.Time{"created_at": j.QueuedAt, "started_at": j.StartedAt, "completed_at": j.CompletedAt} {
		if !at.IsZero() {
			job[name] = at.UTC().Format(time.RFC3339)
		}
	}
	return job
}
