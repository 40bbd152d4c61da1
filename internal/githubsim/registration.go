package githubsim

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// scopeOfURL is the repository or organization that a runner was configured for.
func scopeOfURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", rest.Problem(http.StatusUnprocessableEntity, "url is not a URL")
	}
	scope := strings.Trim(u.Path, "/")
	if scope == "" || strings.Count(scope, "/") > 1 {
		return "", rest.Problem(http.StatusUnprocessableEntity, "'%s' should point to an org or repository.", raw)
	}
	return scope, nil
}

// authorize checks a token before it is used, and says how config.sh has to use it.
func (s *Server) authorize(r *http.Request) (*rest.Answer, error) {
	var q protocol.Authorize
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	scope, err := scopeOfURL(q.URL)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkToken(rest.Bearer(r), q.Event, scope); err != nil {
		return nil, err
	}
	a := protocol.Authorized{AdminFlow: !s.oldFlow, Groups: []string{state.GroupName}}
	for _, g := range s.extraGroups {
		if !strings.Contains(scope, "/") { // a repository has the default group alone
			a.Groups = append(a.Groups, g.Name)
		}
	}
	return rest.OK(a), nil
}

func (s *Server) register(r *http.Request) (a *rest.Answer, err error) {
	var q protocol.Register
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	scope, err := scopeOfURL(q.URL)
	if err != nil {
		return nil, err
	}
	err = s.change(func() error {
		if s.versions.Refuse(q.Version) { // GitHub's words are not known
			return rest.Problem(http.StatusForbidden, "Runner version %s is deprecated and cannot be registered.", q.Version)
		}
		if err := s.checkToken(rest.Bearer(r), purposeRegister, scope); err != nil && !q.Hosted { // GitHub's own machines are not registered with a token
			return err
		}
		rn, secret, err := s.addRunner(registration{
			scope: scope, name: q.Name, labels: q.Labels, group: s.groupID(q.Group), ephemeral: q.Ephemeral, replace: q.Replace, hosted: q.Hosted,
			alone: q.Hosted || q.NoDefaultLabels,
		})
		if err == nil {
			a = rest.Created(protocol.Registered{ID: rn.ID, Credential: secret, Times: s.times.OfRunner()})
		}
		return err
	})
	return a, err
}

func (s *Server) remove(r *http.Request) (*rest.Answer, error) {
	var q protocol.Remove
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	scope, err := scopeOfURL(q.URL)
	if err != nil {
		return nil, err
	}
	return nil, s.change(func() error {
		rn := s.runners[q.ID]
		if rn == nil || !strings.EqualFold(rn.Scope, scope) {
			return rest.ErrNotFound
		}
		if err := s.checkToken(rest.Bearer(r), purposeRemove, scope); err != nil && !rn.Hosted {
			return rest.Problem(http.StatusForbidden, "the remove token is wrong or expired")
		}
		if rn.JobID != 0 {
			return stillBusy(rn)
		}
		s.removeRunner(rn)
		return nil
	})
}
