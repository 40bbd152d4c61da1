package githubsim

import (
	"net/http"
	"net/url"

	"github.com/remuda-ci/remuda/internal/githubsim/payload"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
	"github.com/remuda-ci/remuda/internal/githubsim/webhook"
)

func (s *Server) standinWebhooks(r *http.Request) (*rest.Answer, error) {
	var h webhook.Hook
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
		s.put(state.KindHook, 0, h)
		s.outbox.Set(h)
		return nil
	})
}

// standinHold holds deliveries back, or lets them go. The hold does not outlive a restart.
func (s *Server) standinHold(r *http.Request) (*rest.Answer, error) {
	var q struct {
		Hold bool `json:"hold"`
	}
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	s.outbox.Hold(q.Hold)
	return nil, nil
}

func (s *Server) emitRun(r *state.Run, action string) {
	s.emit("workflow_run", r, action, rest.Object{"workflow_run": s.site().Run(r), "workflow": s.site().Workflow(r)})
}

func (s *Server) emitJob(r *state.Run, j *state.Job, action string) {
	s.emit("workflow_job", r, action, rest.Object{"workflow_job": s.site().Job(r, j, s.groupName(j.GroupID))})
}

func (s *Server) emit(name string, r *state.Run, action string, body rest.Object) {
	owner := state.OwnerOf(r.Repository)
	body["action"] = action
	body["repository"] = s.site().Repository(r.Repository)
	body["organization"] = s.site().Organization(owner)
	body["sender"] = s.site().User(payload.Actor, "User")
	e := webhook.Event{Name: name, Action: action, Run: r.ID, Repository: state.IDOf(r.Repository), Payload: body}
	if in := s.hookInstallation(owner); in != nil {
		e.Installation = in.ID
		body["installation"] = rest.Object{"id": in.ID, "node_id": in.NodeID()}
	}
	s.outbox.Add(e)
}
