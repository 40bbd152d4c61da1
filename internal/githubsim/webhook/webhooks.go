package webhook

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
)

const (
	deliveryTime   = 10 * time.Second // what GitHub gives a receiver to answer
	maxUndelivered = 10_000           // beyond it new deliveries are lost, as on GitHub when a receiver is away
	// atOnce is how many deliveries are under way at most. GitHub bounds them too, by a number that it does not tell.
	atOnce = 4
)

// Outbox sends deliveries, atOnce at a time. Those of one run follow each other in the order of their events, unless the hook says
// that they need not. None is sent again by itself: GitHub does not redeliver either.
type Outbox struct {
	log    hclog.Logger
	client *http.Client
	now    func() time.Time

	mu       sync.Mutex
	hook     Hook
	count    int
	held     bool
	pending  []*Delivery
	underWay map[int64]bool // runs with a delivery that is being sent
	senders  int
	wake     chan struct{}
	lastID   int64
	past     []*Delivery // sent or lost, oldest first
}

// Hook is where deliveries go.
type Hook struct {
	Target      string `json:"target"`
	Secret      string `json:"secret"`
	LoseEvery   int    `json:"lose_every"`
	RepeatEvery int    `json:"repeat_every"`
	// Unordered sends the deliveries of one run side by side too, so that they may come in any order, as on GitHub.
	Unordered bool `json:"unordered,omitempty"`
	// AppID is the app whose hook it is; 0: each app takes it for its own.
	AppID int64 `json:"app_id,omitempty"`
}

func NewOutbox(log hclog.Logger, now func() time.Time) *Outbox {
	transport := &http.Transport{MaxIdleConnsPerHost: atOnce, IdleConnTimeout: time.Minute}
	client := &http.Client{Timeout: deliveryTime, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // GitHub follows none
	}}
	return &Outbox{
		log: log, client: client, now: now, underWay: map[int64]bool{},
		wake: make(chan struct{}, 1), lastID: now().UnixMilli() * 1000,
	}
}

// Set changes where later deliveries go and restarts the counts of LoseEvery and RepeatEvery.
func (o *Outbox) Set(h Hook) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hook, o.count = h, 0
}

// Hold keeps deliveries back, or lets them go in the order of their events.
func (o *Outbox) Hold(held bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held = held
	o.stir()
}

// Add queues one event. Every lose_every-th is lost, every repeat_every-th goes out twice under the same delivery id.
func (o *Outbox) Add(e Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hook.Target == "" {
		return
	}
	o.count++
	body, err := json.Marshal(e.Payload)
	e.Payload = nil // the body is what is kept
	if err != nil {
		o.log.Error("cannot encode delivery", "event", e.Name, "error", err)
		return
	}
	d := &Delivery{Event: e, guid: uuid.NewString(), body: body, to: o.hook}
	if every(o.count, o.hook.LoseEvery) || len(o.pending) >= maxUndelivered {
		o.log.Info("delivery lost", "event", e.Name)
		d.Outcome = outcome{at: o.now(), status: statusTimedOut, Code: http.StatusBadGateway}
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
func (o *Outbox) stir() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take is the next delivery that may go out, or nil.
func (o *Outbox) take() *Delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held || o.senders == atOnce {
		return nil
	}
	for i, d := range o.pending {
		if o.underWay[d.Run] && !d.to.Unordered {
			continue
		}
		o.pending = append(o.pending[:i:i], o.pending[i+1:]...)
		o.underWay[d.Run] = true
		o.senders++
		return d
	}
	return nil
}

// done notes what became of a delivery that take gave out.
func (o *Outbox) done(d *Delivery, out outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d.Outcome = out
	o.record(d)
	delete(o.underWay, d.Run)
	o.senders--
	o.stir()
}
