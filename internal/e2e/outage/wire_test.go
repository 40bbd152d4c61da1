package outage_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// mode is how GitHub's API is.
type mode string

const (
	up       mode = "up"
	failing  mode = "500"
	hanging  mode = "timeout"
	limiting mode = "403"
)

// wire carries the calls of the client to the stand-in, without a network: so
// that time in the bubble can pass. It is what is down.
type wire struct {
	handler http.Handler

	mu    sync.Mutex
	mode  mode
	calls map[mode]map[string][]time.Time // by who made them
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	is := w.mode
	if w.calls[is] == nil {
		w.calls[is] = map[string][]time.Time{}
	}
	w.calls[is][who(r)] = append(w.calls[is][who(r)], time.Now())
	w.mu.Unlock()
	switch is {
	case failing:
		return answer(r, http.StatusInternalServerError, `{"message":"Server Error"}`), nil
	case hanging:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case limiting:
		refused := answer(r, http.StatusForbidden, `{"message":"You have exceeded a secondary rate limit."}`)
		refused.Header.Set("Retry-After", "60")
		return refused, nil
	}
	return serve(w.handler, r), nil
}

// serve has the stand-in answer.
func serve(h http.Handler, r *http.Request) *http.Response {
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	into := httptest.NewRecorder()
	h.ServeHTTP(into, r)
	response := into.Result()
	response.Request = r
	return response
}

func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}
}

// which distinguishes the credentials: the App itself signs each call again
func who(r *http.Request) string {
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if strings.Count(bearer, ".") == 2 {
		return "the App"
	}
	return "its installation"
}

func (w *wire) set(m mode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mode = m
}

func (w *wire) down() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mode != up
}

// called counts the calls that were made while GitHub was so.
func (w *wire) called(m mode) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, calls := range w.calls[m] {
		n += len(calls)
	}
	return n
}

// checkRests: after a 403 with Retry-After no call came before that time.
func (w *wire) checkRests(t *testing.T, rest time.Duration) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls[limiting]) == 0 {
		t.Error("no call was made while GitHub asked for a rest: nothing was shown")
	}
	for who, calls := range w.calls[limiting] {
		// Calls that were under way together are refused together.
		for i := 1; i < len(calls); i++ {
			if pause := calls[i].Sub(calls[i-1]); pause < rest && pause > time.Second {
				t.Errorf("%s called again %s after GitHub asked for a rest of %s", who, pause, rest)
			}
		}
	}
}

// mailbox is where webhooks arrive. It is outside of the bubble, and the bubble
// looks into it: nothing in it may wait for the network.
type mailbox struct {
	url string

	mu    sync.Mutex
	mails []mail
}

type mail struct {
	event, id string
	body      []byte
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	m := &mailbox{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.mails = append(m.mails, mail{r.Header.Get("X-GitHub-Event"), r.Header.Get("X-GitHub-Delivery"), body})
		w.WriteHeader(http.StatusAccepted)
	}))
	server.Config.SetKeepAlivesEnabled(false) // an idle connection would keep the bubble's time from passing
	server.Start()
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func (m *mailbox) take() []mail {
	m.mu.Lock()
	defer m.mu.Unlock()
	mails := m.mails
	m.mails = nil
	return mails
}
