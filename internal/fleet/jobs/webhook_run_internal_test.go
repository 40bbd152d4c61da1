package jobs

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestTheLastRequestOfACaller: requests that a webhook made are not a caller's, wherever they are in the list.
func TestTheLastRequestOfACaller(t *testing.T) {
	request := func(id string, kind lifecycle.RequestKind, count int) lifecycle.Request {
		return lifecycle.Request{RequestID: id, Kind: kind, Spec: lifecycle.Spec{RunAttempt: 1, Count: count}}
	}
	facts := runFacts{requests: []lifecycle.Request{
		request("a", lifecycle.RequestByWebhook, 1),
		request("b", lifecycle.RequestByCaller, 2),
		request("c", lifecycle.RequestByWebhook, 1),
		request("d", lifecycle.RequestByCaller, 3),
	}}
	if last, limit := facts.last(); last == nil || last.RequestID != "b" || limit != 5 {
		t.Errorf("the last request is %+v, and the run may have %d hosts, want request b and 5", last, limit)
	}
}
