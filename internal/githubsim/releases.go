package githubsim

import (
	"net/http"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

func (s *Server) releasesOf(r *http.Request) []state.Release {
	if !strings.EqualFold(repositoryOf(r), state.RunnerRepository) {
		return nil
	}
	return s.releases
}

func (s *Server) listReleases(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []rest.Object{}
	for _, one := range s.releasesOf(r) {
		list = append(list, s.site().Release(one))
	}
	return s.page(r, "", list), nil
}

func (s *Server) latestRelease(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.releasesOf(r)
	if len(all) == 0 {
		return nil, rest.ErrNotFound
	}
	return rest.OK(s.site().Release(all[0])), nil
}

// standinReleases replaces the releases of actions/runner, newest first. It does not outlive a restart.
func (s *Server) standinReleases(r *http.Request) (*rest.Answer, error) {
	var q struct {
		Releases []state.Release `json:"releases"`
	}
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	for _, one := range q.Releases {
		if one.Tag == "" || one.PublishedAt.IsZero() {
			return nil, rest.Problem(http.StatusUnprocessableEntity, "a release needs a tag_name and a published_at")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releases = q.Releases
	return nil, nil
}

// standinVersions sets which versions of the runner GitHub takes, and wakes the listeners. It does not outlive a restart.
func (s *Server) standinVersions(r *http.Request) (*rest.Answer, error) {
	var q state.Versions
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions = q
	for _, rn := range s.runners {
		rn.Notify()
	}
	return nil, nil
}
