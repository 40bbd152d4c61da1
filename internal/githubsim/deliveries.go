package githubsim

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

// event is what a delivery tells of.
type event struct {
	name, action string
	run          int64
	repository   int64
	installation int64 // 0: no app is installed there
	payload      rest.Object
}

// delivery is one event on its way, and then what became of it.
type delivery struct {
	event
	id         int64
	guid       string
	body       []byte
	to         hook
	redelivery bool
	sentHeader http.Header
	outcome    outcome
}

type outcome struct {
	at       time.Time
	took     time.Duration
	status   string
	code     int
	header   http.Header // of the answer, if there was one
	response string
}

// record remembers a delivery that was sent or lost. The caller holds the lock.
func (o *outbox) record(d *delivery) {
	o.lastID++
	d.id = o.lastID
	if d.sentHeader == nil {
		d.sentHeader = d.header()
	}
	o.past = append(o.past, d)
	if len(o.past) > maxDeliveries {
		o.past = append(o.past[:0:0], o.past[len(o.past)-maxDeliveries:]...)
	}
}

// run sends what is pending until stop, then waits for what is under way.
func (o *outbox) run(stop <-chan struct{}) {
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

func (d *delivery) header() http.Header {
	h := http.Header{}
	h.Set("Accept", "*/*")
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "GitHub-Hookshot/standin")
	h.Set("X-GitHub-Event", d.name)
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
func (o *outbox) send(ctx context.Context, d *delivery) outcome {
	begun, out := time.Now(), outcome{at: o.now()}
	d.sentHeader = d.header()
	err := o.post(ctx, d, &out)
	out.took = time.Since(begun)
	if err != nil {
		out.status, out.code = statusNoHost, http.StatusBadGateway
		if errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err) {
			out.status = statusTimedOut
		}
	}
	if out.status != statusOK {
		o.log.Warn("delivery failed", "event", d.name, "delivery", d.guid, "status", out.status, "error", err)
	}
	return out
}

func (o *outbox) post(ctx context.Context, d *delivery, out *outcome) error {
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
	out.code, out.header, out.response, out.status = resp.StatusCode, resp.Header, string(text), statusOK
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		out.status = fmt.Sprintf("Invalid HTTP Response: %d", resp.StatusCode)
	}
	return nil
}

func (d *delivery) item() rest.Object {
	return rest.Object{
		"id": d.id, "guid": d.guid, "delivered_at": rest.Time(d.outcome.at), "redelivery": d.redelivery, "duration": d.outcome.took.Seconds(),
		"status": d.outcome.status, "status_code": d.outcome.code, "event": d.name, "action": rest.OrNull(d.action),
		"installation_id": rest.IdOrNull(d.installation), "repository_id": rest.IdOrNull(d.repository), "throttled_at": nil,
	}
}

// full is the item with what was sent and what came back.
func (d *delivery) full() (rest.Object, error) {
	var payload rest.Object
	if err := json.Unmarshal(d.body, &payload); err != nil {
		return nil, fmt.Errorf("decode delivery %d: %w", d.id, err)
	}
	o := d.item()
	o["url"] = d.to.Target
	o["request"] = rest.Object{"headers": flat(d.sentHeader), "payload": payload}
	response := rest.Object{"headers": nil, "payload": nil}
	if d.outcome.header != nil {
		response = rest.Object{"headers": flat(d.outcome.header), "payload": d.outcome.response}
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
