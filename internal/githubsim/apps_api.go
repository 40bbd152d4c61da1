package githubsim

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

func publicPEM(key *rsa.PublicKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(key)}))
}

func (s *Server) getApp(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.apps[callerOf(r).app]
	if a == nil {
		return nil, rest.ErrNotFound
	}
	return rest.OK(rest.Object{
		"id": a.ID, "client_id": a.ClientID, "slug": a.Slug, "node_id": fmt.Sprintf("A_%d", a.ID), "name": a.Slug, "description": "",
		"owner": s.userObject(actor, "User"), "external_url": s.baseURL, "html_url": s.baseURL + "/apps/" + a.Slug,
		"created_at": rest.Time(a.CreatedAt), "updated_at": rest.Time(a.CreatedAt), "permissions": a.Permissions, "events": a.Events,
		"installations_count": len(a.Installations),
	}), nil
}

func (s *Server) installationObject(a *app, in *installation) rest.Object {
	return rest.Object{
		"id": in.ID, "app_id": a.ID, "client_id": a.ClientID, "app_slug": a.Slug, "account": s.userObject(in.Owner, "Organization"),
		"target_id": idOf(in.Owner), "target_type": "Organization", "repository_selection": "all", "single_file_name": nil,
		"has_multiple_single_files": false, "single_file_paths": []string{}, "events": a.Events, "permissions": a.Permissions,
		"access_tokens_url": s.api("/app/installations/%d/access_tokens", in.ID), "repositories_url": s.api("/installation/repositories"),
		"html_url":   fmt.Sprintf("%s/organizations/%s/settings/installations/%d", s.baseURL, in.Owner, in.ID),
		"created_at": rest.Time(in.CreatedAt), "updated_at": rest.Time(in.CreatedAt), "suspended_at": nil, "suspended_by": nil,
	}
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
		list = append(list, s.installationObject(a, &a.Installations[i]))
	}
	return s.page(r, "", list), nil
}

// getInstallation finds the app's installation for the repository or organisation of the path.
func (s *Server) getInstallation(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.apps[callerOf(r).app]
	if a == nil {
		return nil, rest.ErrNotFound
	}
	in := a.on(ownerOf(scopeOf(r)))
	if in == nil {
		return nil, rest.ErrNotFound
	}
	return rest.OK(s.installationObject(a, in)), nil
}

// accessRequest narrows an installation token down.
type accessRequest struct {
	Repositories  []string          `json:"repositories"`
	RepositoryIDs []int64           `json:"repository_ids"`
	Permissions   map[string]string `json:"permissions"`
}

// narrow is the permissions asked for, if the app has them.
func (q accessRequest) narrow(a *app) (map[string]string, error) {
	if len(q.RepositoryIDs) > 0 {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "repository_ids is not supported by the GitHub stand-in")
	}
	if q.Permissions == nil {
		return a.Permissions, nil
	}
	for _, name := range slices.Sorted(maps.Keys(q.Permissions)) {
		if a.Permissions[name] == "" {
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
	random, _ := newSecret()
	secret := installationPrefix + random
	hash := hashOf(secret)
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
		t := &token{Purpose: purposeInstallation, Scope: in.Owner, Installation: in.ID, Repositories: q.Repositories, ExpiresAt: s.now().Add(TokenLife)}
		s.tokens[hash] = t
		s.dirty[rowKey{kindToken, hash}] = t
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
		out = append(out, s.repositoryObject(owner+"/"+name))
	}
	return out
}

// covers reports whether an installation token is good for the repository or organisation; "" is neither.
func (t *token) covers(scope string) bool {
	if scope == "" {
		return true
	}
	owner, name, isRepository := strings.Cut(scope, "/")
	if !strings.EqualFold(owner, t.Scope) {
		return false
	}
	return !isRepository || t.Repositories == nil || slices.ContainsFunc(t.Repositories, func(n string) bool { return strings.EqualFold(n, name) })
}

func ownerOf(scope string) string {
	owner, _, _ := strings.Cut(scope, "/")
	return owner
}
