package web_test

import (
	"bytes"
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// FuzzWebhook: whatever is delivered, one of the answers is given and nothing is
// taken that none of the secrets signed. With signs set the body is signed as
// GitHub does, whatever signature says.
func FuzzWebhook(f *testing.F) {
	const job = `{"action":"queued","workflow_job":{"id":11,"run_id":7,"status":"queued","created_at":"2021-09-13T02:21:13Z",
		"labels":["remuda-small"]},"repository":{"id":5,"full_name":"acme/web","owner":{"id":6}}}`
	f.Add("workflow_job", id, "application/json", "", true, []byte(job))
	f.Add("workflow_job", id, "application/json", sign([]byte(job), "guess"), false, []byte(job))
	f.Add("workflow_job", id, "application/json", sign([]byte(job), ""), false, []byte(job))
	f.Add("ping", "", "text/plain", "sha1=00", false, []byte("{}"))
	f.Add("workflow_run", "\xff", "application/json;;", "sha256=", true, []byte(`{"action":"completed","workflow_run":{"id":1e9}}`))

	var taken atomic.Int64
	o := (&desk{}).options()
	o.Webhooks.Observer = nil
	o.Webhooks.Take = func(context.Context, lifecycle.Webhook) error {
		taken.Add(1)
		return nil
	}
	_, url := start(f, o)
	f.Fuzz(func(t *testing.T, event, delivery, contentType, signature string, signs bool, body []byte) {
		if signs {
			signature = sign(body, secret)
		}
		header := http.Header{"X-Github-Event": {event}, "X-Github-Delivery": {delivery}, "Content-Type": {contentType}, "X-Hub-Signature-256": {signature}}
		if !sendable(header) {
			return
		}
		before := taken.Load()
		status, text, _ := send(t, http.DefaultClient, "POST", url, header, bytes.NewReader(body))
		took := taken.Load() > before
		authentic := signature == sign(body, secret) || signature == sign(body, newSecret)
		switch {
		case took != (status == 202):
			t.Fatalf("answered %d %q, taken: %t", status, text, took)
		case !authentic && status < 401:
			t.Fatalf("answered %d %q without a signature", status, text)
		}
		switch status {
		case 200, 202, 400, 401, 413, 415:
		default:
			t.Fatalf("answered %d %q", status, text)
		}
	})
}

// sendable reports whether a client can send the values at all.
func sendable(header http.Header) bool {
	for _, values := range header {
		for _, c := range []byte(values[0]) {
			if (c < ' ' && c != '\t') || c == 0x7f {
				return false
			}
		}
	}
	return true
}
