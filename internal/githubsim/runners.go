package githubsim

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/payload"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/runner/runnerfiles"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// maxLabels is GitHub's bound of the custom labels of a runner.
const maxLabels = 100

// maxLabel is how many characters a label may have.
const maxLabel = 256

// registration is what a runner is registered with.
type registration struct {
	scope, name                string
	labels                     []string
	group                      int64
	ephemeral, replace, hosted bool
	jit, alone                 bool // alone: it has no labels but these
}

func (q registration) check() error {
	if q.name == "" || len(q.name) > 64 {
		return rest.Problem(http.StatusUnprocessableEntity, "Invalid request. The runner name must have 1 to 64 characters.")
	}
	return checkLabels(q.labels)
}

func checkLabels(labels []string) error {
	for _, l := range labels {
		if l = strings.TrimSpace(l); l == "" || len(l) > maxLabel {
			return rest.Problem(http.StatusUnprocessableEntity, "Invalid request. A label must have 1 to %d characters.", maxLabel)
		}
	}
	return nil
}

// addRunner makes a registration, or with replace takes over the one of that name.
func (s *Server) addRunner(q registration) (*state.Runner, string, error) {
	q.name = strings.TrimSpace(q.name)
	if err := q.check(); err != nil {
		return nil, "", err
	}
	scope, name := q.scope, q.name
	secret, hash := state.NewSecret()
	r := s.runnerNamed(scope, name)
	switch {
	case r == nil:
		r = &state.Runner{ID: s.nextID("runner", 1), Scope: scope, Name: name, CreatedAt: s.now()}
		s.revive(r)
		s.runners[r.ID] = r
	case !q.replace:
		return nil, "", rest.Problem(http.StatusConflict, "Already exists - A runner with the name %s already exists.", name)
	case r.JobID != 0:
		return nil, "", stillBusy(r)
	}
	r.Labels, r.Ephemeral, r.Credential, r.Session = state.MakeLabels(q.labels, q.alone), q.ephemeral, hash, ""
	r.GroupID, r.Hosted, r.JIT = q.group, q.hosted, q.jit
	r.Notify()
	s.put(state.KindRunner, r.ID, r)
	s.log.Info("runner registered", "runner", r.Name, "id", r.ID, "scope", scope)
	return r, secret, nil
}

func (s *Server) runnerNamed(scope, name string) *state.Runner {
	for _, r := range s.runners {
		if strings.EqualFold(r.Scope, scope) && strings.EqualFold(r.Name, name) {
			return r
		}
	}
	return nil
}

func stillBusy(r *state.Runner) error {
	return rest.Problem(http.StatusUnprocessableEntity, "Bad request - Runner %q is still running a job", r.Name)
}

// shown is the runner as GitHub's API shows it.
func (s *Server) shown(r *state.Runner) rest.Object {
	return s.site().Runner(r, s.online(r), r.Busy(s.now(), s.times.BusyLag))
}

func (s *Server) removeRunner(r *state.Runner) {
	delete(s.runners, r.ID)
	s.removed[r.Credential] = true
	s.put(state.KindRunner, r.ID, nil)
	r.Notify()
	s.log.Info("runner removed", "runner", r.Name, "id", r.ID)
}

// runnerIn finds the runner that the path of a call names, in the scope it names.
func (s *Server) runnerIn(r *http.Request) (*state.Runner, error) {
	id, err := rest.PathID(r, "id")
	if err != nil {
		return nil, err
	}
	found := s.runners[id]
	if found == nil || found.Hosted || !strings.EqualFold(found.Scope, scopeOf(r)) {
		return nil, rest.ErrNotFound
	}
	return found, nil
}

func (s *Server) listRunners(r *http.Request) (*rest.Answer, error) {
	page, perPage := rest.PageOf(r)
	name := r.URL.Query().Get("name")
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*state.Runner
	for _, rn := range s.runners {
		if !rn.Hosted && strings.EqualFold(rn.Scope, scopeOf(r)) && (name == "" || rn.Name == name) {
			found = append(found, rn)
		}
	}
	slices.SortFunc(found, func(a, b *state.Runner) int { return cmp.Compare(a.ID, b.ID) })
	from, to, header := rest.Paginate(r, s.baseURL, len(found), page, perPage)
	list := []rest.Object{}
	for _, rn := range found[from:to] {
		list = append(list, s.shown(rn))
	}
	a := rest.OK(rest.Object{"total_count": len(found), "runners": list})
	a.Header = header
	return a, nil
}

// page is one page of a list: under the key, with the length of it all, or by itself without a key.
func (s *Server) page(r *http.Request, key string, list []rest.Object) *rest.Answer {
	page, perPage := rest.PageOf(r)
	from, to, header := rest.Paginate(r, s.baseURL, len(list), page, perPage)
	a := &rest.Answer{Status: http.StatusOK, Header: header, Body: list[from:to]}
	if key != "" {
		a.Body = rest.Object{"total_count": len(list), key: list[from:to]}
	}
	return a
}

func (s *Server) getRunner(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rn, err := s.runnerIn(r)
	if err != nil {
		return nil, err
	}
	return rest.OK(s.shown(rn)), nil
}

func (s *Server) deleteRunner(r *http.Request) (*rest.Answer, error) {
	return nil, s.change(func() error {
		rn, err := s.runnerIn(r)
		if err != nil {
			return err
		}
		if rn.JobID != 0 {
			return stillBusy(rn)
		}
		s.removeRunner(rn)
		return nil
	})
}

func (s *Server) listLabels(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rn, err := s.runnerIn(r)
	if err != nil {
		return nil, err
	}
	return labelList(rn), nil
}

func labelList(r *state.Runner) *rest.Answer {
	return rest.OK(rest.Object{"total_count": len(r.Labels), "labels": payload.Labels(r.Labels)})
}

// setLabels sets the custom labels of a runner, or with add adds some. Jobs go by the labels that GitHub has, so it holds at once.
func (s *Server) setLabels(add bool) rest.Endpoint {
	return func(r *http.Request) (*rest.Answer, error) {
		var q struct {
			Labels []string `json:"labels"`
		}
		if err := rest.Decode(r, &q, false); err != nil {
			return nil, err
		}
		if q.Labels == nil || add && len(q.Labels) == 0 || len(q.Labels) > maxLabels {
			return nil, rest.Problem(http.StatusUnprocessableEntity, "Invalid request.\n\n\"labels\" must have at most %d items.", maxLabels)
		}
		if err := checkLabels(q.Labels); err != nil {
			return nil, err
		}
		return s.changeLabels(r, func(rn *state.Runner) error {
			kept := []string{}
			for _, l := range rn.Labels {
				if add || l.Type != "custom" {
					kept = append(kept, l.Name)
				}
			}
			rn.Labels = state.MakeLabels(append(kept, q.Labels...), true)
			return nil
		})
	}
}

func (s *Server) deleteLabels(r *http.Request) (*rest.Answer, error) {
	return s.changeLabels(r, func(rn *state.Runner) error {
		rn.Labels = slices.DeleteFunc(rn.Labels, func(l state.Label) bool { return l.Type == "custom" })
		return nil
	})
}

func (s *Server) deleteLabel(r *http.Request) (*rest.Answer, error) {
	return s.changeLabels(r, func(rn *state.Runner) error {
		i := slices.IndexFunc(rn.Labels, func(l state.Label) bool { return strings.EqualFold(l.Name, r.PathValue("name")) })
		switch {
		case i < 0:
			return rest.ErrNotFound
		case rn.Labels[i].Type != "custom":
			return rest.Problem(http.StatusUnprocessableEntity, "Label %s is read-only and cannot be removed", rn.Labels[i].Name)
		}
		rn.Labels = slices.Delete(rn.Labels, i, i+1)
		return nil
	})
}

func (s *Server) changeLabels(r *http.Request, f func(*state.Runner) error) (a *rest.Answer, err error) {
	err = s.change(func() error {
		rn, err := s.runnerIn(r)
		if err != nil {
			return err
		}
		if err := f(rn); err != nil {
			return err
		}
		s.put(state.KindRunner, rn.ID, rn)
		a = labelList(rn)
		return nil
	})
	return a, err
}

type jitRequest struct {
	Name          string   `json:"name"`
	RunnerGroupID *int64   `json:"runner_group_id"`
	Labels        []string `json:"labels"`
	WorkFolder    string   `json:"work_folder"`
}

func (q jitRequest) check() error {
	switch {
	case q.RunnerGroupID == nil:
		return rest.Problem(http.StatusUnprocessableEntity, "Invalid request.\n\n\"runner_group_id\" wasn't supplied.")
	case len(q.Labels) < 1 || len(q.Labels) > maxLabels:
		return rest.Problem(http.StatusUnprocessableEntity, "Invalid request.\n\n\"labels\" must have 1 to %d items.", maxLabels)
	}
	return nil
}

// generateJIT registers an ephemeral runner and returns its configuration files, as the real endpoint does.
func (s *Server) generateJIT(r *http.Request) (*rest.Answer, error) {
	var q jitRequest
	if err := rest.Decode(r, &q, false); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	var a *rest.Answer
	err := s.change(func() error {
		if !s.hasGroup(r.PathValue("org") != "", *q.RunnerGroupID) {
			return rest.ErrNotFound
		}
		rn, secret, err := s.addRunner(registration{jit: true, alone: true,
			scope: scopeOf(r), name: q.Name, labels: q.Labels, group: *q.RunnerGroupID, ephemeral: true,
		})
		if err != nil {
			return err
		}
		encoded, err := runnerfiles.EncodeJIT(runnerfiles.Settings{
			AgentID: rn.ID, AgentName: rn.Name, ServerURL: s.baseURL, GitHubURL: s.baseURL + "/" + rn.Scope, WorkFolder: cmp.Or(q.WorkFolder, "_work"),
			Times: s.times.OfRunner(),
		}, secret)
		a = rest.Created(rest.Object{"runner": s.shown(rn), "encoded_jit_config": encoded})
		return err
	})
	return a, err
}
