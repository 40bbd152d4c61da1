package sqs_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// method is one of the port's, with what it calls.
type method struct {
	operation string
	// what begins its errors.
	what string
	do   func(ctx context.Context, w *world, handles []string) error
}

var methods = map[string]method{
	"Send": {"SendMessageBatch", "send to queue ", func(ctx context.Context, w *world, _ []string) error {
		return w.Send(ctx, message("i-1"), message("i-2"), message("i-3"))
	}},
	"Receive": {"ReceiveMessage", "receive from queue ", func(ctx context.Context, w *world, _ []string) error {
		_, err := w.Receive(ctx, large, 10)
		return err
	}},
	"Delete": {"DeleteMessageBatch", "delete from queue ", func(ctx context.Context, w *world, handles []string) error {
		return w.Delete(ctx, large, handles...)
	}},
	"Return": {"ChangeMessageVisibilityBatch", "return to queue ", func(ctx context.Context, w *world, handles []string) error {
		return w.Return(ctx, large, handles...)
	}},
}

// eachMethod runs a test for each method, with three messages received.
func eachMethod(t *testing.T, test func(t *testing.T, w *world, m method, handles []string)) {
	t.Helper()
	for name, m := range methods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newQueues(t)
			w.send(t, "i-1", "i-2", "i-3")
			_, handles := w.receive(t)
			test(t, w, m, handles)
		})
	}
}

// TestOneFaultPasses: whatever goes wrong with one call, the next does it.
func TestOneFaultPasses(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(t *testing.T, w *world, m method, handles []string) {
		for _, kind := range awstest.Kinds {
			w.proxy.Heal()
			w.proxy.Inject(awstest.Fault{Service: "sqs", Operation: m.operation, Nth: 1, Kind: kind})
			before := len(w.proxy.Calls())
			if err := m.do(t.Context(), w, handles); err != nil {
				t.Errorf("%v: %v", kind, err)
			}
			if diff := cmp.Diff([]string{m.operation, m.operation}, w.operations(before)); diff != "" {
				t.Errorf("%v: calls (-want +got):\n%s", kind, diff)
			}
		}
	})
}

// TestLostAnswers: what was done twice does no harm.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method string
		want   []string // what can be received afterwards
	}{
		"of a send":    {"Send", []string{"i-1", "i-1", "i-2", "i-2", "i-3", "i-3"}},
		"of a receive": {"Receive", nil}, // hidden until their visibility runs out
		"of a delete":  {"Delete", nil},
		"of a return":  {"Return", []string{"i-1", "i-2", "i-3"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newQueues(t)
			var handles []string
			if test.method != "Send" {
				w.send(t, "i-1", "i-2", "i-3")
			}
			if test.method != "Send" && test.method != "Receive" {
				_, handles = w.receive(t)
			}
			m := methods[test.method]
			w.proxy.Inject(awstest.Fault{Service: "sqs", Operation: m.operation, Nth: 1, Kind: awstest.LostAfterSuccess})
			if err := m.do(t.Context(), w, handles); err != nil {
				t.Error(err)
			}
			ids, _ := w.receive(t)
			if diff := cmp.Diff(test.want, ids); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFaultsThatStay are ErrUnavailable, and leave handles as they were.
func TestFaultsThatStay(t *testing.T) {
	t.Parallel()
	texts := map[awstest.Kind]string{
		awstest.Throttle: "RequestThrottled: injected: throttle", awstest.InternalError: "InternalFailure: injected: internal error",
		awstest.LostBeforeSend: "EOF", awstest.Timeout: "",
	}
	eachMethod(t, func(t *testing.T, w *world, m method, handles []string) {
		for kind, text := range texts {
			// Another replica for each: a retryer has a budget.
			w := &world{Queue: w.another(t), proxy: w.proxy}
			w.proxy.Heal()
			w.proxy.Inject(awstest.Fault{Service: "sqs", Operation: m.operation, Kind: kind})
			err := m.do(t.Context(), w, handles)
			if !errors.Is(err, lifecycle.ErrUnavailable) || errors.Is(err, lifecycle.ErrRefused) {
				t.Errorf("%v: got %v, want %v", kind, err, lifecycle.ErrUnavailable)
			}
			if want := m.what + largeQueue + ": sqs:" + m.operation + ": "; err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), text) {
				t.Errorf("%v: got %v, want %s…%s", kind, err, want, text)
			}
		}
		if n, want := len(w.tries(m.operation)), 5*len(texts); n < want {
			t.Errorf("%d tries, want at least %d", n, want)
		}
		w.proxy.Heal()
		if err := w.Return(t.Context(), large, handles...); err != nil {
			t.Error(err)
		}
		if ids, _ := w.receive(t); !slices.Equal(ids, []string{"i-1", "i-2", "i-3"}) {
			t.Errorf("afterwards there are %q", ids)
		}
	})
}

// TestPartOfABatchFails: only that part is tried again.
func TestPartOfABatchFails(t *testing.T) {
	t.Parallel()
	const none = "" // all goes well
	tests := map[string]struct {
		codes []string // of each call
		calls []int    // how many entries each is for
		is    error
		text  string
	}{
		"once":     {[]string{"InternalError"}, []int{3, 1}, nil, ""},
		"twice":    {[]string{"ServiceUnavailable", "RequestThrottled"}, []int{3, 1, 1}, nil, ""},
		"for long": {slices.Repeat([]string{"InternalError"}, 9), []int{3, 1, 1, 1, 1}, lifecycle.ErrUnavailable, "InternalError: so it is"},
		"for good": {[]string{"Sender InvalidMessageContents"}, []int{3}, lifecycle.ErrRefused, "InvalidMessageContents: so it is"},
		"for lack of a permission": {
			[]string{"Sender AccessDenied"}, []int{3}, lifecycle.ErrRefused, "AccessDenied: so it is; allow the action sqs:",
		},
		"never": {[]string{none}, []int{3}, nil, ""},
	}
	eachMethod(t, func(t *testing.T, w *world, m method, handles []string) {
		if m.operation == "ReceiveMessage" {
			return // it has no parts
		}
		for name, test := range tests {
			asked := w.failEntries(m.operation, func(e entry) bool { return e.ID == "1" }, test.codes...)
			err := m.do(t.Context(), w, handles)
			if !errors.Is(err, test.is) || err != nil && !strings.HasPrefix(err.Error(), m.what+largeQueue+": ") ||
				err != nil && !strings.Contains(err.Error(), test.text) {
				t.Errorf("%s: got %v, want %v with %q", name, err, test.is, test.text)
			}
			var calls []int
			for _, entries := range *asked {
				calls = append(calls, len(entries))
			}
			if diff := cmp.Diff(test.calls, calls); diff != "" {
				t.Errorf("%s: entries of each call (-want +got):\n%s", name, diff)
			}
			if last := (*asked)[len(*asked)-1]; len(*asked) > 1 && last[0] != (*asked)[0][1] {
				t.Errorf("%s: tried again: %+v, want %+v", name, last[0], (*asked)[0][1])
			}
		}
	})
}

// TestOutdatedHandles: SQS says so in one of these ways.
func TestOutdatedHandles(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(t *testing.T, w *world, m method, handles []string) {
		if m.operation != "DeleteMessageBatch" && m.operation != "ChangeMessageVisibilityBatch" {
			return
		}
		for _, code := range []string{
			"Sender ReceiptHandleIsInvalid", "Sender InvalidParameterValue", "Sender MessageNotInflight", "Sender AWS.SimpleQueueService.MessageNotInflight",
		} {
			asked := w.failEntries(m.operation, func(e entry) bool { return e.ID != "1" }, code)
			if err := m.do(t.Context(), w, handles); err != nil || len(*asked) != 1 {
				t.Errorf("%s: error %v after %d calls, want none after 1", code, err, len(*asked))
			}
		}
	})
}

func TestMissingQueue(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(t *testing.T, w *world, m method, handles []string) {
		w.remove(t, largeQueue)
		for range 2 { // with the URL that it had, and without one
			err := m.do(t.Context(), w, handles)
			want := m.what + largeQueue + ": refused: sqs:GetQueueUrl: AWS.SimpleQueueService.NonExistentQueue: The specified queue does not exist; " +
				"it is not in us-east-1 in the account of these credentials: run Refresh, or `controld config check --aws` to see what is missing"
			if !errors.Is(err, lifecycle.ErrRefused) || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		}
		w.ensure(t)
		if err := m.do(t.Context(), w, handles); err != nil {
			t.Errorf("in a queue that was made again: %v", err)
		}
	})
}

// TestQueueMadeAgainElsewhere: the old URL leads nowhere.
func TestQueueMadeAgainElsewhere(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(t *testing.T, w *world, m method, handles []string) {
		var lost bool
		w.proxy.Handle("sqs", m.operation, func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
			if !lost {
				lost = true
				awstest.Fail(rw, r, http.StatusBadRequest, "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
				return
			}
			forward(r).Write(rw)
		})
		before := len(w.proxy.Calls())
		if err := m.do(t.Context(), w, handles); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{m.operation, "GetQueueUrl", m.operation}, w.operations(before)); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// TestCallerIsRefused: another account's queue, no policy, or no such caller.
func TestCallerIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ code, message, remedy string }{
		"by a policy":         {"AccessDenied", "Access to the resource is denied.", "allow the action sqs:"},
		"as unknown":          {"InvalidClientTokenId", "The security token included in the request is invalid.", "give valid credentials: "},
		"as no longer known":  {"ExpiredToken", "The security token included in the request is expired", "give valid credentials: "},
		"for a wrong secret":  {"SignatureDoesNotMatch", "The signature does not match.\n\nThe Canonical String is 'secret'", "check the credentials, "},
		"without credentials": {"MissingAuthenticationToken", "", "give valid credentials: "},
	}
	eachMethod(t, func(t *testing.T, w *world, m method, handles []string) {
		for name, test := range tests {
			w.proxy.Handle("sqs", m.operation, func(rw http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
				awstest.Fail(rw, r, http.StatusForbidden, test.code, test.message)
			})
			before := len(w.proxy.Calls())
			err := m.do(t.Context(), w, handles)
			start := m.what + largeQueue + ": refused: sqs:" + m.operation + ": " + test.code
			if !errors.Is(err, lifecycle.ErrRefused) || !strings.HasPrefix(err.Error(), start) || !strings.Contains(err.Error(), "; "+test.remedy) {
				t.Errorf("%s: got %v, want %s…; %s…", name, err, start, test.remedy)
			}
			if err != nil && strings.Contains(err.Error(), "'secret'") {
				t.Errorf("%s: a secret is in %v", name, err)
			}
			if n := len(w.operations(before)); n != 1 {
				t.Errorf("%s: %d calls, want 1: it will not get better", name, n)
			}
		}
	})
}

// TestCallerGoes while the entries of a batch that failed wait for another try.
func TestCallerGoes(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(t *testing.T, w *world, m method, handles []string) {
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := func(rw http.ResponseWriter, _ *http.Request, _ func(*http.Request) *awstest.Answer) {
			cancel()
			(&awstest.Answer{Status: http.StatusOK, Header: http.Header{}, Body: []byte(`{"Failed":[{"Id":"0","Code":"InternalError","SenderFault":false}]}`)}).Write(rw)
		}
		w.proxy.Handle("sqs", m.operation, cancelled)
		before := len(w.proxy.Calls())
		err := m.do(ctx, w, handles)
		if m.operation == "ReceiveMessage" && err == nil {
			return // the answer was faster than the caller
		}
		if !errors.Is(err, lifecycle.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		if n := len(w.operations(before)); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
	})
}
