package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

const (
	// maxDeliveries is how many deliveries are remembered. GitHub keeps those of three days.
	maxDeliveries = 3000
	// maxResponse is how many bytes of a receiver's answer are remembered.
	maxResponse = 4 << 10
)

// What GitHub says of a delivery. It documents that every status but OK is a failure.
const (
	statusOK       = "OK"
	statusTimedOut = "timed out"
	statusNoHost   = "failed to connect to host"
)

// Event is what happened, as a delivery reports it.
type Event struct {
	Name, Action string
	Run          int64
	Repository   int64
	Installation int64 // 0: no app is installed there
	Payload      rest.Object
}

// Delivery is one event on its way, and then what became of it.
type Delivery struct {
	Event
	ID         int64
	guid       string
	body       []byte
	to         Hook
	redelivery bool
	sentHeader http.Header
	Outcome    outcome
}

type outcome struct {
	at       time.Time
	took     time.Duration
	status   string
	Code     int
	header   http.Header // of the answer, if there was one
	response string
}

// record remembers a delivery that was sent or lost. The caller holds the lock.
func (o *Outbox) record(d *Delivery) {
	o.lastID++
	d.ID = o.lastID
	if d.sentHeader == nil {
		d.sentHeader = d.header()
	}
	o.past = append(o.past, d)
	if len(o.past) > maxDeliveries {
		o.past = append(o.past[:0:0], o.past[len(o.past)-maxDeliveries:]...)
	}
}

// Run sends what is pending until stop, then waits for what is under way.
func (o *Outbox) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer o.client.CloseIdleConnections()
	defer cancel()
	finished := make(chan struct{}, atOnce)
	sending := 0
	for {
		for d := o.take(); d != nil; d = o.take() {
			sending++
			go func() {
				o.done(d, o.send(ctx, d))
				finished <- struct{}{}
			}()
		}
		select {
		case <-o.wake:
		case <-finished:
			sending--
		case <-stop:
			cancel()
			for ; sending > 0; sending-- {
				<-finished
			}
			return
		}
	}
}

func (d *Delivery) header() http.Header {
	h := http.Header{}
	h.Set("Accept", "*/*")
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "GitHub-Hookshot/standin")
	h.Set("X-GitHub-Event", d.Name)
	h.Set("X-GitHub-Delivery", d.guid)
	h.Set("X-GitHub-Hook-ID", "1")
	if d.to.AppID != 0 {
		h.Set("X-GitHub-Hook-Installation-Target-Type", "integration")
		h.Set("X-GitHub-Hook-Installation-Target-ID", strconv.FormatInt(d.to.AppID, 10))
	}
	if d.to.Secret != "" {
		mac := hmac.New(sha256.New, []byte(d.to.Secret))
		mac.Write(d.body)
		h.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	return h
}

// send makes one delivery. A receiver that does not answer in time has failed, whatever it made of it.
func (o *Outbox) send(ctx context.Context, d *Delivery) outcome {
	begun, out := time.Now(), outcome{at: o.now()}
	d.sentHeader = d.header()
	err := o.post(ctx, d, &out)
	out.took = time.Since(begun)
	if err != nil {
		out.status, out.Code = statusNoHost, http.StatusBadGateway
		if errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err) {
			out.status = statusTimedOut
		}
	}
	if out.status != statusOK {
		o.log.Warn("delivery failed", "event", d.Name, "delivery", d.guid, "status", out.status, "error", err)
	}
	return out
}

func (o *Outbox) post(ctx context.Context, d *Delivery, out *outcome) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.to.Target, bytes.NewReader(d.body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header = d.sentHeader
	resp, err := o.client.Do(req)
	if err != nil {
		return fmt.Errorf("deliver: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	out.Code, out.header, out.response, out.status = resp.StatusCode, resp.Header, string(text), statusOK
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		out.status = fmt.Sprintf("Invalid HTTP Response: %d", resp.StatusCode)
	}
	return nil
}

func (d *Delivery) Item() rest.Object {
	return rest.Object{
		"id": d.ID, "guid": d.guid, "delivered_at": rest.Time(d.Outcome.at), "redelivery": d.redelivery, "duration": d.Outcome.took.Seconds(),
		"status": d.Outcome.status, "status_code": d.Outcome.Code, "event": d.Name, "action": rest.OrNull(d.Action),
		"installation_id": rest.IDOrNull(d.Installation), "repository_id": rest.IDOrNull(d.Repository), "throttled_at": nil,
	}
}

// Full is the item with what was sent and what came back.
func (d *Delivery) Full() (rest.Object, error) {
	var payload rest.Object
	if err := json.Unmarshal(d.body, &payload); err != nil {
		return nil, fmt.Errorf("decode delivery %d: %w", d.ID, err)
	}
	o := d.Item()
	o["url"] = d.to.Target
	o["request"] = rest.Object{"headers": flat(d.sentHeader), "payload": payload}
	response := rest.Object{"headers": nil, "payload": nil}
	if d.Outcome.header != nil {
		response = rest.Object{"headers": flat(d.Outcome.header), "payload": d.Outcome.response}
	}
	o["response"] = response
	return o, nil
}

// flat is the header as GitHub shows it, one value for each name. The signature is shown too, as it is to the app's owner.
func flat(h http.Header) rest.Object {
	out := rest.Object{}
	for name := range h {
		out[name] = h.Get(name)
	}
	return out
}

// Seen returns the deliveries that an app may see, newest first.
func (o *Outbox) Seen(app int64) []*Delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []*Delivery
	for _, d := range slices.Backward(o.past) {
		if d.to.AppID == 0 || d.to.AppID == app {
			out = append(out, d)
		}
	}
	return out
}

// Find returns a delivery that the app may see, or nil.
func (o *Outbox) Find(id, app int64) *Delivery {
	for _, d := range o.Seen(app) {
		if d.ID == id {
			return d
		}
	}
	return nil
}

// Redeliver sends a delivery again, under its own guid and as a delivery of its own. It is never lost.
func (o *Outbox) Redeliver(d *Delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	again := &Delivery{Event: d.Event, guid: d.guid, body: d.body, to: d.to, redelivery: true}
	if o.hook.Target != "" {
		again.to = o.hook // a hook that has moved since
	}
	o.pending = append(o.pending, again)
	o.stir()
}
