package githubsim

import (
	"cmp"
	"crypto/rsa"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

const (
	firstInstallationID = 60_000_001
	installationPrefix  = "ghs_" // by which GitHub's installation tokens begin
)

// app is a GitHub App, with the accounts that it is installed on.
type app struct {
	ID            int64             `json:"id"`
	ClientID      string            `json:"client_id"`
	Slug          string            `json:"slug"`
	Key           string            `json:"key"` // PEM, as it was given
	Permissions   map[string]string `json:"permissions"`
	Events        []string          `json:"events"`
	Installations []installation    `json:"installations"`
	CreatedAt     time.Time         `json:"created_at"`

	key *rsa.PublicKey // of Key
}

// installation is an app on one account, for all its repositories.
type installation struct {
	ID        int64     `json:"id"`
	Owner     string    `json:"owner"`
	CreatedAt time.Time `json:"created_at"`
}

func (i installation) nodeID() string {
	return fmt.Sprintf("MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9u%d", i.ID)
}

func (a *app) on(owner string) *installation {
	i := slices.IndexFunc(a.Installations, func(in installation) bool { return strings.EqualFold(in.Owner, owner) })
	if i < 0 {
		return nil
	}
	return &a.Installations[i]
}

// appOf is the app that the issuer of a JSON web token names, by its id or its client id.
func (s *Server) appOf(issuer any) *app {
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

func (s *Server) installationOf(id int64) (*app, *installation) {
	for _, a := range s.apps {
		for i := range a.Installations {
			if a.Installations[i].ID == id {
				return a, &a.Installations[i]
			}
		}
	}
	return nil, nil
}

// hookInstallation is the installation on the account that a delivery tells of: that of the hook's app, else of the app with the
// lowest id that is there.
func (s *Server) hookInstallation(owner string) *installation {
	var found *app
	for _, a := range s.apps {
		if a.on(owner) != nil && (s.hook.AppID == 0 || s.hook.AppID == a.ID) && (found == nil || a.ID < found.ID) {
			found = a
		}
	}
	if found == nil {
		return nil
	}
	return found.on(owner)
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
	key, err := parseKey(cmp.Or(q.PublicKey, q.PrivateKey))
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
		made := &app{
			ID: q.AppID, ClientID: cmp.Or(q.ClientID, fmt.Sprintf("Iv23standin%d", q.AppID)), Slug: fmt.Sprintf("standin-%d", q.AppID),
			Key: publicPEM(key), Permissions: q.Permissions, Events: q.Events, CreatedAt: s.now(), key: key,
		}
		if made.Permissions == nil {
			made.Permissions = map[string]string{"actions": "write", "administration": "write", "metadata": "read", "organization_self_hosted_runners": "write"}
		}
		if made.Events == nil {
			made.Events = []string{"workflow_job", "workflow_run"}
		}
		s.install(made, q.Owners)
		s.apps[made.ID] = made
		s.put(kindApp, made.ID, made)
		a = rest.OK(rest.Object{"app_id": made.ID, "client_id": made.ClientID, "installations": made.Installations})
		return nil
	})
	return a, err
}

// install keeps the installations that the app had there before.
func (s *Server) install(a *app, owners []string) {
	before := s.apps[a.ID]
	for _, owner := range owners {
		if before != nil && before.on(owner) != nil {
			a.Installations = append(a.Installations, *before.on(owner))
			continue
		}
		a.Installations = append(a.Installations, installation{s.nextID("installation", firstInstallationID), owner, s.now()})
	}
	if before != nil {
		a.CreatedAt = before.CreatedAt
	}
}
