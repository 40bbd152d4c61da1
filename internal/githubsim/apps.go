package githubsim

import (
	"cmp"
	"crypto/rsa"
	"fmt"
	"net/http"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/appjwt"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

const (
	firstInstallationID = 60_000_001
	installationPrefix  = "ghs_" // by which GitHub's installation tokens begin
)

// appOf is the app that the issuer of a JSON web token names, by its id or its client id.
func (s *Server) appOf(issuer any) *state.App {
	name := fmt.Sprint(issuer)
	if n, isNumber := issuer.(float64); isNumber {
		name = fmt.Sprint(int64(n))
	}
	for _, a := range s.apps {
		if name == fmt.Sprint(a.ID) || name == a.ClientID {
			return a
		}
	}
	return nil
}

func (s *Server) installationOf(id int64) (*state.App, *state.Installation) {
	for _, a := range s.apps {
		for i := range a.Installations {
			if a.Installations[i].ID == id {
				return a, &a.Installations[i]
			}
		}
	}
	return nil, nil
}

// hookInstallation is the installation that a delivery about the account names: that of the hook's app, else of the app with the
// lowest id that is there.
func (s *Server) hookInstallation(owner string) *state.Installation {
	var found *state.App
	for _, a := range s.apps {
		if a.On(owner) != nil && (s.hook.AppID == 0 || s.hook.AppID == a.ID) && (found == nil || a.ID < found.ID) {
			found = a
		}
	}
	if found == nil {
		return nil
	}
	return found.On(owner)
}

type appRequest struct {
	AppID       int64             `json:"app_id"`
	ClientID    string            `json:"client_id"`
	PrivateKey  string            `json:"private_key"`
	PublicKey   string            `json:"public_key"`
	Owners      []string          `json:"owners"`
	Permissions map[string]string `json:"permissions"`
	Events      []string          `json:"events"`
}

func (q appRequest) check() (*rsa.PublicKey, error) {
	if q.AppID <= 0 {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "app_id is not a positive number")
	}
	for _, owner := range q.Owners {
		if owner == "" || strings.ContainsAny(owner, "/ ") {
			return nil, rest.Problem(http.StatusUnprocessableEntity, "owner %q is not the name of an account", owner)
		}
	}
	key, err := appjwt.ParseKey(cmp.Or(q.PublicKey, q.PrivateKey))
	if err != nil { // the error never has the key
		return nil, rest.Problem(http.StatusUnprocessableEntity, "private_key or public_key: %v", err)
	}
	return key, nil
}

// standinApp registers an app, or changes one: the accounts it was installed on and is no more are left.
func (s *Server) standinApp(r *http.Request) (a *rest.Answer, err error) {
	var q appRequest
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	key, err := q.check()
	if err != nil {
		return nil, err
	}
	err = s.change(func() error {
		made := &state.App{
			ID: q.AppID, ClientID: cmp.Or(q.ClientID, fmt.Sprintf("Iv23standin%d", q.AppID)), Slug: fmt.Sprintf("standin-%d", q.AppID),
			Key: publicPEM(key), Permissions: q.Permissions, Events: q.Events, CreatedAt: s.now(), PublicKey: key,
		}
		if made.Permissions == nil {
			made.Permissions = map[string]string{"actions": "write", "administration": "write", "checks": "write", "contents": "read", "metadata": "read", "organization_self_hosted_runners": "write"}
		}
		if made.Events == nil {
			made.Events = []string{"workflow_job", "workflow_run"}
		}
		s.install(made, q.Owners)
		s.apps[made.ID] = made
		s.put(state.KindApp, made.ID, made)
		a = rest.OK(rest.Object{"app_id": made.ID, "client_id": made.ClientID, "installations": made.Installations})
		return nil
	})
	return a, err
}

// install keeps the installations that the app had there before.
func (s *Server) install(a *state.App, owners []string) {
	before := s.apps[a.ID]
	for _, owner := range owners {
		if before != nil && before.On(owner) != nil {
			a.Installations = append(a.Installations, *before.On(owner))
			continue
		}
		a.Installations = append(a.Installations, state.Installation{
			ID: s.nextID("installation", firstInstallationID), Owner: owner, CreatedAt: s.now(),
		})
	}
	if before != nil {
		a.CreatedAt = before.CreatedAt
	}
}
