package githubsim

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
)

const (
	deliveryTime   = 10 * time.Second // what GitHub gives a receiver to answer
	maxUndelivered = 10_000           // beyond it new deliveries are lost, as on GitHub when a receiver is away
)

// outbox sends deliveries one after another, in the order of their events, and never again: GitHub does not redeliver either.
type outbox struct {
	log    hclog.Logger
	client *http.Client

	mu      sync.Mutex
	hook    hook
	count   int
	pending []delivery
	wake    chan struct{}
}

type delivery struct {
	id, event string
	body      []byte
	to        hook
}

func newOutbox(log hclog.Logger) *outbox {
	return &outbox{log: log, client: &http.Client{Timeout: deliveryTime}, wake: make(chan struct{}, 1)}
}

// set changes where later deliveries go and begins counting anew.
func (o *outbox) set(h hook) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hook, o.count = h, 0
}

// add queues one event. Every lose_every-th is lost, every repeat_every-th goes out twice under the same delivery id.
func (o *outbox) add(event string, payload object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hook.Target == "" {
		return
	}
	o.count++
	body, err := json.Marshal(payload)
	if err != nil {
		o.log.Error("cannot encode delivery", "event", event, "error", err)
		return
	}
	if every(o.count, o.hook.LoseEvery) || len(o.pending) >= maxUndelivered {
		o.log.Info("delivery lost", "event", event)
		return
	}
	d := delivery{id: uuid.NewString(), event: event, body: body, to: o.hook}
	o.pending = append(o.pending, d)
	if every(o.count, o.hook.RepeatEvery) {
		o.pending = append(o.pending, d)
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func every(count, n int) bool { return n > 0 && count%n == 0 }

func (o *outbox) run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		select {
		case <-stop:
			return
		case <-o.wake:
		}
		for _, d := range o.take() {
			if err := o.send(ctx, d); err != nil {
				o.log.Warn("delivery failed", "event", d.event, "delivery", d.id, "error", err)
			}
		}
	}
}

func (o *outbox) take() []delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.pending
	o.pending = nil
	return out
}

func (o *outbox) send(ctx context.Context, d delivery) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.to.Target, bytes.NewReader(d.body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "GitHub-Hookshot/standin")
	req.Header.Set("X-GitHub-Event", d.event)
	req.Header.Set("X-GitHub-Delivery", d.id)
	req.Header.Set("X-GitHub-Hook-ID", "1")
	if d.to.Secret != "" {
		mac := hmac.New(sha256.New, []byte(d.to.Secret))
		mac.Write(d.body)
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	resp, err := o.client.Do(req)
	if err != nil {
		return fmt.Errorf("deliver: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("deliver: receiver answered %s", resp.Status)
	}
	return nil
}

func (s *Server) emitRun(r *run, action string) {
	s.emit("workflow_run", r, object{"action": action, "workflow_run": s.runObject(r), "workflow": s.workflowObject(r)})
}

func (s *Server) emitJob(r *run, j *job, action string) {
	s.emit("workflow_job", r, object{"action": action, "workflow_job": s.jobObject(r, j)})
}

func (s *Server) emit(event string, r *run, payload object) {
	payload["repository"] = s.repositoryObject(r.Repository)
	payload["organization"] = s.organizationObject(r.Repository)
	payload["sender"] = s.userObject(actor, "User")
	s.outbox.add(event, payload)
}
