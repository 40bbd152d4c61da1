package payload

import (
	"fmt"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// Release renders a release of actions/runner.
func (s Site) Release(r state.Release) rest.Object {
	id := state.IDOf(state.RunnerRepository + r.Tag)
	url := s.API("/repos/%s/releases/%d", state.RunnerRepository, id)
	return rest.Object{
		"id": id, "node_id": fmt.Sprintf("RE_%d", id), "tag_name": r.Tag, "name": r.Tag, "target_commitish": state.Branch, "draft": false,
		"prerelease": false, "created_at": rest.Time(r.PublishedAt), "published_at": rest.Time(r.PublishedAt), "author": s.User("github-actions[bot]", "Bot"),
		"url": url, "assets_url": url + "/assets", "upload_url": url + "/assets{?name,label}", "assets": []rest.Object{}, "body": "",
		"html_url":    s.URL + "/" + state.RunnerRepository + "/releases/tag/" + r.Tag,
		"tarball_url": s.API("/repos/%s/tarball/%s", state.RunnerRepository, r.Tag), "zipball_url": s.API("/repos/%s/zipball/%s", state.RunnerRepository, r.Tag),
	}
}
