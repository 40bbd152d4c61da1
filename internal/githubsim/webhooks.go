package githubsim

import (
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
)

const (
	deliveryTime   = 10 * time.Second // what GitHub gives a receiver to answer
	maxUndelivered = 10_000           // beyond it new deliveries are lost, as on GitHub when a receiver is away
	// atOnce is how many deliveries are under way at most. GitHub bounds them too, by a number that it does not tell.
	atOnce = 4
)

// outbox sends deliveries, atOnce at a time. Those of one run follow each other in the order of their events, unless the hook says
// that they need not. None is sent again by itself: GitHub does not redeliver either.
type outbox struct {
	log    hclog.Logger
	client *http.Client
	now    func() time.Time

	mu       sync.Mutex
	hook     hook
	count    int
	held     bool
	pending  []*delivery
	underWay map[int64]bool // runs of which a delivery is being sent
	senders  int
	wake     chan struct{}
	lastID   int64
	past     []*delivery // sent or lost, oldest first
}

// hook is where deliveries go.
type hook struct {
	Target      string `json:"target"`
	Secret      string `json:"secret"`
	LoseEvery   int    `json:"lose_every"`
	RepeatEvery int    `json:"repeat_every"`
	// Unordered sends the deliveries of one run side by side too, so that they may come in any order, as on GitHub.
	Unordered bool `json:"unordered,omitempty"`
	// AppID is the app whose hook it is; 0: each app takes it for its own.
	AppID int64 `json:"app_id,omitempty"`
}

func newOutbox(log hclog.Logger, now func() time.Time) *outbox {
	transport := &http.Transport{MaxIdleConnsPerHost: atOnce, IdleConnTimeout: time.Minute}
	client := &http.Client{Timeout: deliveryTime, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // GitHub follows none
	}}
	return &outbox{
		log: log, client: client, now: now, underWay: map[int64]bool{},
		wake: make(chan struct{}, 1), lastID: now().UnixMilli() * 1000,
	}
}

// set changes where later deliveries go and begins counting anew.
func (o *outbox) set(h hook) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hook, o.count = h, 0
}

// hold keeps deliveries back, or lets them go in the order of their events.
func (o *outbox) hold(held bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held = held
	o.stir()
}

// add queues one event. Every lose_every-th is lost, every repeat_every-th goes out twice under the same delivery id.
func (o *outbox) add(e event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hook.Target == "" {
		return
	}
	o.count++
	body, err := json.Marshal(e.payload)
	e.payload = nil // the body is what is kept
	if err != nil {
		o.log.Error("cannot encode delivery", "event", e.name, "error", err)
		return
	}
	d := &delivery{event: e, guid: uuid.NewString(), body: body, to: o.hook}
	if every(o.count, o.hook.LoseEvery) || len(o.pending) >= maxUndelivered {
		o.log.Info("delivery lost", "event", e.name)
		d.outcome = outcome{at: o.now(), status: statusTimedOut, code: http.StatusBadGateway}
		o.record(d)
		return
	}
	o.pending = append(o.pending, d)
	if every(o.count, o.hook.RepeatEvery) {
		again := *d
		o.pending = append(o.pending, &again)
	}
	o.stir()
}

func every(count, n int) bool { return n > 0 && count%n == 0 }

// stir has the pending deliveries looked at. The caller holds the lock.
func (o *outbox) stir() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take is the next delivery that may go out, or nil.
func (o *outbox) take() *delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held || o.senders == atOnce {
		return nil
	}
	for i, d := range o.pending {
		if o.underWay[d.run] && !d.to.Unordered {
			continue
		}
		o.pending = append(o.pending[:i:i], o.pending[i+1:]...)
		o.underWay[d.run] = true
		o.senders++
		return d
	}
	return nil
}

// done notes what became of a delivery that take gave out.
func (o *outbox) done(d *delivery, out outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d.outcome = out
	o.record(d)
	delete(o.underWay, d.run)
	o.senders--
	o.stir()
}

func (s *Server) standinWebhooks(r *http.Request) (*rest.Answer, error) {
	var h hook
	if err := rest.Decode(r, &h, true); err != nil {
		return nil, err
	}
	u, err := url.Parse(h.Target)
	if h.Target != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "target is not an http or https URL")
	}
	if h.LoseEvery < 0 || h.RepeatEvery < 0 {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "lose_every and repeat_every must not be negative")
	}
	return nil, s.change(func() error {
		s.hook = h
		s.put(kindHook, 0, h)
		s.outbox.set(h)
		return nil
	})
}

// standinHold keeps deliveries back until it is told to let them go. It does not outlive a restart.
func (s *Server) standinHold(r *http.Request) (*rest.Answer, error) {
	var q struct {
		Hold bool `json:"hold"`
	}
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	s.outbox.hold(q.Hold)
	return nil, nil
}

func (s *Server) emitRun(r *run, action string) {
	s.emit("workflow_run", r, action, rest.Object{"workflow_run": s.runObject(r), "workflow": s.workflowObject(r)})
}

func (s *Server) emitJob(r *run, j *job, action string) {
	s.emit("workflow_job", r, action, rest.Object{"workflow_job": s.jobObject(r, j)})
}

func (s *Server) emit(name string, r *run, action string, payload rest.Object) {
	owner := ownerOf(r.Repository)
	payload["action"] = action
	payload["repository"] = s.repositoryObject(r.Repository)
	payload["organization"] = s.organizationObject(owner)
	payload["sender"] = s.userObject(actor, "User")
	e := event{name: name, action: action, run: r.ID, repository: idOf(r.Repository), payload: payload}
	if in := s.hookInstallation(owner); in != nil {
		e.installation = in.ID
		payload["installation"] = rest.Object{"id": in.ID, "node_id": in.nodeID()}
	}
	s.outbox.add(e)
}
