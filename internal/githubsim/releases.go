package githubsim

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// runnerRepository is the one repository that has releases.
const runnerRepository = "actions/runner"

// release is one release of actions/runner.
type release struct {
	Tag         string    `json:"tag_name"`
	PublishedAt time.Time `json:"published_at"`
}

// knownReleases are some that there were, newest first, until others are set.
var knownReleases = []release{
	{"v2.330.0", time.Date(2025, 11, 19, 15, 0, 0, 0, time.UTC)},
	{"v2.329.0", time.Date(2025, 10, 14, 15, 0, 0, 0, time.UTC)},
	{"v2.328.0", time.Date(2025, 8, 13, 15, 0, 0, 0, time.UTC)},
}

func (s *Server) releaseObject(r release) rest.Object {
	id := idOf(runnerRepository + r.Tag)
	url := s.api("/repos/%s/releases/%d", runnerRepository, id)
	return rest.Object{
		"id": id, "node_id": fmt.Sprintf("RE_%d", id), "tag_name": r.Tag, "name": r.Tag, "target_commitish": branch, "draft": false,
		"prerelease": false, "created_at": rest.Time(r.PublishedAt), "published_at": rest.Time(r.PublishedAt), "author": s.userObject("github-actions[bot]", "Bot"),
		"url": url, "assets_url": url + "/assets", "upload_url": url + "/assets{?name,label}", "assets": []rest.Object{}, "body": "",
		"html_url":    s.baseURL + "/" + runnerRepository + "/releases/tag/" + r.Tag,
		"tarball_url": s.api("/repos/%s/tarball/%s", runnerRepository, r.Tag), "zipball_url": s.api("/repos/%s/zipball/%s", runnerRepository, r.Tag),
	}
}

func (s *Server) releasesOf(r *http.Request) []release {
	if !strings.EqualFold(repositoryOf(r), runnerRepository) {
		return nil
	}
	return s.releases
}

func (s *Server) listReleases(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []rest.Object{}
	for _, one := range s.releasesOf(r) {
		list = append(list, s.releaseObject(one))
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
	return rest.OK(s.releaseObject(all[0])), nil
}

// standinReleases replaces the releases of actions/runner, newest first. It does not outlive a restart.
func (s *Server) standinReleases(r *http.Request) (*rest.Answer, error) {
	var q struct {
		Releases []release `json:"releases"`
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
