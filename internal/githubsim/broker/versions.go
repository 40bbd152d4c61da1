package broker

import (
	"net/http"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// What a listener says of itself with each poll (actions/runner 2.336, src/Sdk/WebApi/WebApi/BrokerHttpClient.cs:83-101).
const (
	versionParameter       = "runnerVersion"
	disableUpdateParameter = "disableUpdate"
)

// accepted refuses messages to a version below the minimum: RunnerVersionTooOld (BrokerHttpClient.cs:121-125). A listener that does
// not say its version passes.
func (b *Broker) accepted(r *http.Request) error {
	version := r.URL.Query().Get(versionParameter)
	if b.state.Versions().Refuse(version) {
		return rest.Problem(http.StatusForbidden, "Runner version v%s is deprecated and cannot receive messages.", version)
	}
	return nil
}

// refresh makes an older runner update itself before it gets a job, unless it says that it must not
// (src/Runner.Listener/BrokerMessageListener.cs:296-302).
func (b *Broker) refresh(r *http.Request, rn *state.Runner) *protocol.Message {
	q, latest := r.URL.Query(), b.state.Versions().Latest
	m := protocol.Message{Kind: protocol.MessageRefresh, Version: latest}
	sent := state.SentMessage{Kind: m.Kind}
	if !state.Older(q.Get(versionParameter), latest) || q.Get(disableUpdateParameter) == "true" || rn.Sent[sent] {
		return nil
	}
	rn.Sent[sent] = true
	return &m
}
