package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/github/webhook"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/secretfile"
)

// webhookPath is where GitHub sends its deliveries.
const webhookPath = "/webhooks/github"

// The bounds of a delivery.
const (
	// maxDeliveryBytes is far above the 50 KiB that a job or a run comes to.
	// GitHub sends up to 25 MiB, of events that are of no use here.
	maxDeliveryBytes = 1 << 20
	// deliveryTimeout is for the body to come in. GitHub gives up after 10 s.
	deliveryTimeout = 5 * time.Second
	// takeTimeout is for the one write that a delivery brings: with it an answer
	// is given within four seconds of the body, and so within nine of the headers.
	takeTimeout = 900 * time.Millisecond
	// maxDeliveries is how many are written at once, of those that are complete and signed. Others wait for placePatience, as many as
	// have maxWaitingBytes together: a burst of thousands is over by then, also on a busy machine. More get 503: a delivery that GitHub could
	// not hand over is recovered later, which takes minutes.
	maxDeliveries   = 64
	placePatience   = 3 * time.Second
	maxWaitingBytes = 64 << 20
)

// Observer counts deliveries by their event, workflow_job, workflow_run or
// other, and by their outcome, such as accepted.
type Observer interface {
	Delivered(event, outcome string)
}

// The outcomes of deliveries.
const (
	outcomeAccepted    = "accepted"     // written down: 202
	outcomeIgnored     = "ignored"      // of no use: 200
	outcomeRepeated    = "repeated"     // seen already: 200
	outcomeMalformed   = "malformed"    // signed, and not as GitHub makes them: 400
	outcomeFuture      = "future"       // signed, and of a time that has not come: 400
	outcomeCutOff      = "cut_off"      // the body did not come to its end: 400, 408
	outcomeUnsigned    = "unsigned"     // no SHA-256 signature: 401
	outcomeForged      = "forged"       // the signature is wrong: 401
	outcomeMethod      = "method"       // no POST: 405
	outcomeOversized   = "oversized"    // more than maxDeliveryBytes: 413
	outcomeContentType = "content_type" // no JSON: 415
	outcomeBusy        = "busy"         // too many at once: 503
	outcomeUnavailable = "unavailable"  // it could not be written down: 503
)

// Webhooks is what takes GitHub's deliveries. All but Observer and Now are required.
type Webhooks struct {
	Secrets SecretSource
	// Take writes a delivery down, and returns before its context ends. ErrExists
	// says that it is known, ErrWebhookIgnored that it is of no use; with any
	// other error the delivery failed, and is recovered later.
	Take     func(ctx context.Context, w lifecycle.Webhook) error
	Observer Observer
	// Now is time.Now when nil.
	Now func() time.Time
}

// receiver serves the deliveries.
type receiver struct {
	Webhooks
	log    hclog.Logger
	bodies bodies
	slots  chan struct{}
	// waiting is how many bytes the deliveries have that wait for a place.
	waiting atomic.Int64
}

// newReceiver refuses to start without a secret: everybody could order hosts.
func newReceiver(o Webhooks, log hclog.Logger) (*receiver, error) {
	if o.Secrets == nil || o.Take == nil {
		return nil, errors.New("webhooks: secrets and take are required")
	}
	if _, err := o.Secrets.secrets(); err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &receiver{Webhooks: o, log: log, slots: make(chan struct{}, maxDeliveries)}, nil
}

// answer is the response to a delivery, and what it is counted as.
type answer struct {
	status        int
	outcome, text string
}

func (a *answer) Error() string { return a.text }

func refuse(status int, outcome, format string, args ...any) error {
	return &answer{status, outcome, fmt.Sprintf(format, args...)}
}

func (h *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := h.receive(w, r)
	if h.Observer != nil {
		h.Observer.Delivered(knownEvent(r), a.outcome)
	}
	switch a.status {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	say(w, a.status, a.text)
}

// knownEvent bounds what a header can add to the metrics.
func knownEvent(r *http.Request) string {
	switch event := eventOf(r); event {
	case lifecycle.EventWorkflowJob, lifecycle.EventWorkflowRun:
		return event
	}
	return "other"
}

func eventOf(r *http.Request) string { return r.Header.Get("X-GitHub-Event") }

// receive handles one delivery. Until its signature is checked, nothing of it is believed, logged or kept.
func (h *receiver) receive(w http.ResponseWriter, r *http.Request) answer {
	body, err := h.authentic(w, r)
	if err != nil {
		var a *answer
		if errors.As(err, &a) {
			h.log.Debug("webhook refused", logkey.Outcome, a.outcome, logkey.Reason, a.text)
			return *a
		}
		h.log.Error("cannot check webhooks", logkey.Error, err)
		return answer{http.StatusServiceUnavailable, outcomeUnavailable, "cannot check signatures now"}
	}
	if !h.begin(int64(len(body))) {
		return answer{http.StatusServiceUnavailable, outcomeBusy, tooMany}
	}
	defer func() { <-h.slots }()
	return h.handle(r, body)
}

// begin takes a place for a delivery of so many bytes, and waits for one if there is none. It is false if there is none in time, or too much waits.
func (h *receiver) begin(size int64) bool {
	select {
	case h.slots <- struct{}{}:
		return true
	default:
	}
	defer h.waiting.Add(-size)
	if h.waiting.Add(size) > maxWaitingBytes {
		return false
	}
	late := time.NewTimer(placePatience)
	defer late.Stop()
	select {
	case h.slots <- struct{}{}:
		return true
	case <-late.C:
		return false
	}
}

// authentic returns the body of a delivery that GitHub signed. Any error but an answer is ours.
func (h *receiver) authentic(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Method != http.MethodPost {
		return nil, refuse(http.StatusMethodNotAllowed, outcomeMethod, "deliveries come by POST")
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, outcomeContentType, "choose the content type application/json for the webhook")
	}
	if r.ContentLength > maxDeliveryBytes {
		return nil, oversized()
	}
	signature, ok := signatureOf(r.Header.Get("X-Hub-Signature-256"))
	if !ok {
		return nil, refuse(http.StatusUnauthorized, outcomeUnsigned, "X-Hub-Signature-256 is missing or malformed; a SHA-1 signature does not count")
	}
	body, err := h.readBody(w, r)
	if err != nil {
		return nil, err
	}
	secrets, err := h.Secrets.secrets()
	if err != nil {
		return nil, err
	}
	if !signed(body, signature, secrets) {
		return nil, refuse(http.StatusUnauthorized, outcomeForged, "the signature is not that of this body and the secret known here")
	}
	return body, nil
}

func oversized() error {
	return refuse(http.StatusRequestEntityTooLarge, outcomeOversized, "more than %d bytes", maxDeliveryBytes)
}

const tooMany = "too many deliveries at once"

// readBody reads no more than there may be, and for no longer than it may take. A slow body gives way to others.
func (h *receiver) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(deliveryTimeout)); err != nil {
		return nil, fmt.Errorf("bound the time of a body: %w", err)
	}
	in := h.bodies.begin(w, r)
	if in == nil {
		return nil, refuse(http.StatusServiceUnavailable, outcomeBusy, tooMany)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDeliveryBytes))
	gaveWay := h.bodies.end(in)
	var long *http.MaxBytesError
	var late net.Error
	switch {
	case errors.As(err, &long):
		return nil, oversized()
	case err != nil && gaveWay:
		return nil, refuse(http.StatusServiceUnavailable, outcomeBusy, tooMany+", and this one is slow")
	case errors.As(err, &late) && late.Timeout():
		return nil, refuse(http.StatusRequestTimeout, outcomeCutOff, "the body took longer than %s", deliveryTimeout)
	case err != nil:
		return nil, refuse(http.StatusBadRequest, outcomeCutOff, "the body was cut off")
	}
	return body, nil
}

// handle reads a signed body and has it written down.
func (h *receiver) handle(r *http.Request, body []byte) answer {
	event := eventOf(r)
	d, err := webhook.Parse(event, r.Header.Get("X-GitHub-Delivery"), body, h.Now())
	if err == nil {
		err = h.take(r.Context(), d)
	}
	a := outcomeOf(err)
	args := append(about(d), "event", knownEvent(r), "outcome", a.outcome)
	switch a.outcome {
	case outcomeUnavailable:
		h.log.Warn("webhook not taken", append(args, logkey.Error, err)...)
	case outcomeMalformed, outcomeFuture:
		h.log.Warn("webhook not understood", append(args, logkey.Field, fieldOf(err))...)
	default:
		h.log.Debug("webhook stored", args...)
	}
	return a
}

// take goes on when the sender leaves: what is half written would be sent again.
func (h *receiver) take(ctx context.Context, d lifecycle.Webhook) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeTimeout)
	defer cancel()
	return h.Take(ctx, d)
}

func outcomeOf(err error) answer {
	var wrong *webhook.Error
	switch {
	case err == nil:
		return answer{http.StatusAccepted, outcomeAccepted, "accepted"}
	case errors.Is(err, lifecycle.ErrWebhookIgnored):
		return answer{http.StatusOK, outcomeIgnored, "ignored: " + whyIgnored(err)}
	case errors.Is(err, lifecycle.ErrExists):
		return answer{http.StatusOK, outcomeRepeated, "seen already"}
	case errors.As(err, &wrong) && wrong.Future:
		return answer{http.StatusBadRequest, outcomeFuture, err.Error()}
	case errors.As(err, &wrong):
		return answer{http.StatusBadRequest, outcomeMalformed, err.Error()}
	}
	return answer{http.StatusServiceUnavailable, outcomeUnavailable, "cannot take it now"}
}

// whyIgnored is an error without the word that all of its kind have.
func whyIgnored(err error) string {
	word := lifecycle.ErrWebhookIgnored.Error()
	return strings.TrimSuffix(strings.TrimPrefix(err.Error(), word+": "), ": "+word)
}

func fieldOf(err error) string {
	var wrong *webhook.Error
	if errors.As(err, &wrong) {
		return wrong.Field
	}
	return ""
}

// about is all that is logged of a body: the keys by which to find the rest.
func about(d lifecycle.Webhook) []any {
	args := []any{logkey.Delivery, d.DeliveryID, logkey.Action, d.Action}
	switch {
	case d.Job != nil:
		return append(args, logkey.Repository, d.Job.Repository, logkey.Run, d.Job.RunID, logkey.Job, d.Job.ID)
	case d.Run != nil:
		return append(args, logkey.Repository, d.Run.Repository, logkey.Run, d.Run.RunID)
	}
	return nil
}

// webhookSecret is one in a file or a variable. One that can be guessed lets anyone have hosts launched.
var webhookSecret = secretfile.Kind{Noun: "secret", Least: 16}

// SecretSource gives the secrets with which a delivery may be signed. It is
// asked for each delivery, so that secrets may be replaced while the daemon runs: add
// the new one, configure it at GitHub, and then remove the old one.
type SecretSource func() ([]lifecycle.Secret, error)

// SecretFile reads the secrets from a file, one in each line.
func SecretFile(path string) SecretSource {
	return func() ([]lifecycle.Secret, error) {
		secrets, err := webhookSecret.Read(path)
		if err != nil {
			return nil, fmt.Errorf("read webhook secrets: %w", err)
		}
		return secrets, nil
	}
}

// SecretVariable reads them from an environment variable, one in each line.
func SecretVariable(name string) SecretSource {
	return func() ([]lifecycle.Secret, error) {
		secrets, err := webhookSecret.Split([]byte(os.Getenv(name)))
		if err != nil {
			return nil, fmt.Errorf("read webhook secrets: the variable %s %w", name, err)
		}
		return secrets, nil
	}
}

// secrets are those of the source. None, or an empty one, is an error.
func (s SecretSource) secrets() ([]lifecycle.Secret, error) {
	secrets, err := s()
	if err != nil {
		return nil, err
	}
	switch {
	case slices.Contains(secrets, ""):
		return nil, errors.New("a webhook secret is empty")
	case len(secrets) == 0:
		return nil, errors.New("there is no webhook secret")
	}
	return secrets, nil
}

// signatureOf reads the value of X-Hub-Signature-256; false if it is malformed.
func signatureOf(header string) ([]byte, bool) {
	digits, ok := strings.CutPrefix(header, "sha256=")
	signature, err := hex.DecodeString(digits)
	return signature, ok && err == nil && len(signature) == sha256.Size
}

// signed reports whether one of the secrets signed the body. It takes as long
// whichever did, and however much of a signature is right.
func signed(body, signature []byte, secrets []lifecycle.Secret) bool {
	found := false
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret.Reveal()))
		mac.Write(body)
		if hmac.Equal(mac.Sum(nil), signature) {
			found = true
		}
	}
	return found
}
