package bench

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github/webhook"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	missed "github.com/remuda-ci/remuda/internal/lifecycle/delivery"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/web"
)

const webhookSecret lifecycle.Secret = "that of the benchmark"

// BenchmarkWebhooks: so many jobs are queued within a second, and a pool has 2,000 idle hosts for them. Each is a signed delivery over HTTP, sent in its time
// whatever became of those before. It reports the answers (202: written down; 503: refused, since there was no place or the write took too long), how long they took, and when the first, the middle and the
// last host was claimed after the first delivery.
func BenchmarkWebhooks(b *testing.B) {
	for _, rate := range []int{1, 2_000, 6_000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			for range b.N {
				burst(b, rate, 2_000)
			}
		})
	}
}

func burst(b *testing.B, rate, hosts int) {
	b.StopTimer()
	w := newWorld(b)
	w.fill(b, hosts, nil)
	outcomes := &outcomes{}
	s, err := web.New(web.Options{
		Ready: func(context.Context) error { return nil }, Metrics: http.NotFoundHandler(),
		Webhooks: &web.Webhooks{
			Secrets:  func() ([]lifecycle.Secret, error) { return []lifecycle.Secret{webhookSecret}, nil },
			Observer: outcomes,
			Take:     func(ctx context.Context, h lifecycle.Webhook) error { return w.fleet.TakeWebhook(ctx, h, time.Now()) },
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var serving sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	serving.Go(func() {
		if err := s.Serve(listener); err != nil {
			b.Error(err)
		}
	})
	serving.Go(func() { w.fleet.ServeJobs(ctx) })
	serving.Go(func() { w.fleet.Sweep(ctx) })
	defer serving.Wait()
	defer cancel()
	defer s.Stop(context.Background())
	transport := &http.Transport{MaxIdleConnsPerHost: rate, DisableCompression: true}
	defer transport.CloseIdleConnections()
	requests := make([]*http.Request, rate)
	for i := range requests {
		requests[i] = delivery(b, "http://"+listener.Addr().String()+"/webhooks/github", i)
	}
	client, used := &http.Client{Transport: transport}, cpu(b)
	var codes [600]atomic.Int64
	took := make([]time.Duration, rate)
	var sending sync.WaitGroup
	b.StartTimer()
	began := time.Now()
	for i, request := range requests {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		sending.Go(func() {
			at := time.Now()
			answer, err := client.Do(request)
			took[i] = time.Since(at)
			if err != nil {
				b.Error(err)
				return
			}
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if codes[answer.StatusCode].Add(1); answer.StatusCode != http.StatusAccepted && answer.StatusCode != http.StatusServiceUnavailable {
				b.Errorf("a delivery got %s: %s", answer.Status, text)
			}
		})
	}
	sending.Wait()
	want := min(hosts, int(codes[http.StatusAccepted].Load()))
	if want == 0 {
		b.Fatal("no delivery was taken")
	}
	claims := w.store.waitForClaims(b, want, time.Minute)
	b.StopTimer()
	b.ReportMetric(float64(codes[http.StatusAccepted].Load()), "202s")
	b.ReportMetric(float64(outcomes.busy.Load()), "503s-busy")
	b.ReportMetric(float64(outcomes.away.Load()), "503s-unavailable")
	b.ReportMetric(claims[0].Sub(began).Seconds()*1000, "first-claim-ms")
	b.ReportMetric(claims[want/2].Sub(began).Seconds()*1000, "half-claimed-ms")
	b.ReportMetric(claims[want-1].Sub(began).Seconds()*1000, "last-claim-ms")
	b.ReportMetric(float64((cpu(b)-used).Microseconds())/1000/float64(rate), "cpu-ms/delivery")
	reportLatency(b, took)
}

// waitForClaims waits until so many hosts were claimed, and returns when.
func (s *instantHosts) waitForClaims(b *testing.B, n int, within time.Duration) []time.Time {
	b.Helper()
	for until := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		claims := s.claims
		s.mu.Unlock()
		switch {
		case len(claims) >= n:
			return claims
		case time.Now().After(until):
			b.Fatalf("%d of %d hosts were claimed within %s", len(claims), n, within)
		}
	}
}

// delivery is GitHub's about a job that is queued.
func delivery(b *testing.B, url string, i int) *http.Request {
	b.Helper()
	body, err := json.Marshal(map[string]any{
		"action": "queued",
		"workflow_job": map[string]any{
			"id": i + 1, "run_id": i + 1, "run_attempt": 1, "name": "build", "labels": []string{"remuda-bench"}, "status": "queued",
			"created_at": time.Now().UTC().Format(time.RFC3339),
		},
		"repository": map[string]any{"id": 7, "full_name": repository, "owner": map[string]any{"id": 8}},
	})
	if err != nil {
		b.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	mac.Write(body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-GitHub-Event", lifecycle.EventWorkflowJob)
	r.Header.Set("X-GitHub-Delivery", fmt.Sprintf("delivery-%d", i))
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return r
}

// jobsOf are the options of a fleet whose pool takes the jobs of the deliveries.
func jobsOf(store fleet.JobStore) *fleet.JobOptions {
	return &fleet.JobOptions{
		Store: store, GitHub: &offlineJobs{}, Parse: webhook.Parse,
		Pools: map[string]fleet.JobPool{"default": {
			JobPool: policy.JobPool{Maximum: 10_000, UnclaimedTimeout: time.Hour},
			Labels:  []string{"remuda-bench"}, Repositories: []string{"acme/*"},
			Spec: lifecycle.Spec{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand},
		}},
	}
}

// offlineJobs registers runners for jobs without a network.
type offlineJobs struct {
	fleet.GitHubJobs
	registered atomic.Int64
}

func (g *offlineJobs) JIT(context.Context, string, string, []string) (lifecycle.Registration, int64, error) {
	id := g.registered.Add(1)
	return lifecycle.Registration{
		Kind: lifecycle.RegistrationJIT, URL: "https://github.test/" + repository, Secret: lifecycle.Secret(fmt.Sprint(id)), ExpiresAt: time.Now().Add(time.Hour),
	}, id, nil
}

func (g *offlineJobs) WorkflowRun(context.Context, string, string) (lifecycle.WorkflowRun, error) {
	return lifecycle.WorkflowRun{RepositoryID: 7, OwnerID: 8, HeadRepositoryID: 7, Event: "push"}, nil
}

func (g *offlineJobs) WorkflowJob(_ context.Context, repository string, id int64) (lifecycle.WorkflowJob, error) {
	return lifecycle.WorkflowJob{ID: id, RunID: fmt.Sprint(id), Repository: repository, Status: "queued", Labels: []string{"remuda-bench"}}, nil
}

func (g *offlineJobs) MissedDeliveries(context.Context, time.Time) ([]missed.Missed, error) {
	return nil, lifecycle.ErrNotFound
}

func (g *offlineJobs) QueuedJobs(context.Context, string) ([]lifecycle.WorkflowJob, error) {
	return nil, nil
}

// outcomes counts the deliveries that were refused.
type outcomes struct{ busy, away atomic.Int64 }

func (o *outcomes) Delivered(_, outcome string) {
	switch outcome {
	case "busy":
		o.busy.Add(1)
	case "unavailable":
		o.away.Add(1)
	}
}
