package githubsim

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/journal"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

func (s *Server) getApp(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.apps[callerOf(r).app]
	if a == nil {
		return nil, rest.ErrNotFound
	}
	return rest.OK(s.site().App(a)), nil
}

func (s *Server) listInstallations(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.apps[callerOf(r).app]
	if a == nil {
		return nil, rest.ErrNotFound
	}
	list := []rest.Object{}
	for i := range a.Installations {
		list = append(list, s.site().Installation(a, &a.Installations[i]))
	}
	return s.page(r, "", list), nil
}

// getInstallation finds the app's installation for the repository or organization of the path.
func (s *Server) getInstallation(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.apps[callerOf(r).app]
	if a == nil {
		return nil, rest.ErrNotFound
	}
	in := a.On(state.OwnerOf(scopeOf(r)))
	if in == nil {
		return nil, rest.ErrNotFound
	}
	return rest.OK(s.site().Installation(a, in)), nil
}

// accessRequest narrows an installation token down.
type accessRequest struct {
	Repositories  []string          `json:"repositories"`
	RepositoryIDs []int64           `json:"repository_ids"`
	Permissions   map[string]string `json:"permissions"`
}

// narrow is the permissions asked for, if the app has them.
func (q accessRequest) narrow(a *state.App) (map[string]string, error) {
	if len(q.RepositoryIDs) > 0 {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "repository_ids is not supported by the GitHub stand-in")
	}
	if q.Permissions == nil {
		return a.Permissions, nil
	}
	for _, name := range slices.Sorted(maps.Keys(q.Permissions)) {
		if has := a.Permissions[name]; has == "" || has == "read" && q.Permissions[name] != "read" {
			return nil, rest.Problem(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
		}
	}
	return q.Permissions, nil
}

func (s *Server) createAccessToken(r *http.Request) (*rest.Answer, error) {
	var q accessRequest
	if err := rest.Decode(r, &q, false); err != nil {
		return nil, err
	}
	id, err := rest.PathID(r, "id")
	if err != nil {
		return nil, err
	}
	random, _ := state.NewSecret()
	secret := installationPrefix + random
	hash := state.HashOf(secret)
	var made *rest.Answer
	err = s.change(func() error {
		a, in := s.installationOf(id)
		if in == nil || a.ID != callerOf(r).app {
			return rest.ErrNotFound
		}
		permissions, err := q.narrow(a)
		if err != nil {
			return err
		}
		t := &state.Token{Purpose: purposeInstallation, Scope: in.Owner, Installation: in.ID, Repositories: q.Repositories, ExpiresAt: s.now().Add(TokenLife), Permissions: permissions}
		s.tokens[hash] = t
		s.dirty[journal.Key{Kind: state.KindToken, ID: hash}] = t
		body := rest.Object{"token": secret, "expires_at": t.ExpiresAt.UTC().Format(time.RFC3339), "permissions": permissions, "repository_selection": "all"}
		if q.Repositories != nil {
			body["repository_selection"] = "selected"
			body["repositories"] = s.repositoryObjects(in.Owner, q.Repositories)
		}
		made = rest.Created(body)
		return nil
	})
	return made, err
}

func (s *Server) repositoryObjects(owner string, names []string) []rest.Object {
	out := []rest.Object{}
	for _, name := range names {
		out = append(out, s.site().Repository(owner+"/"+name))
	}
	return out
}

func publicPEM(key *rsa.PublicKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(key)}))
}
