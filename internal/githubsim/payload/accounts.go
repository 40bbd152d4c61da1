package payload

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// User is a person or, with kind Organization, the account of an organization, as GitHub shows it everywhere.
func (s Site) User(login, kind string) rest.Object {
	url, gists := s.API("/users/%s", login), "{/gist_id}"
	return rest.Object{
		"login": login, "id": state.IDOf(login), "node_id": fmt.Sprintf("U_%d", state.IDOf(login)), "type": kind, "site_admin": false, "gravatar_id": "",
		"avatar_url": fmt.Sprintf("%s/avatars/u/%d", s.URL, state.IDOf(login)), "url": url, "html_url": s.URL + "/" + login,
		"followers_url": url + "/followers", "following_url": url + "/following{/other_user}", "gists_url": url + "/gists" + gists,
		"starred_url": url + "/starred{/owner}{/repo}", "subscriptions_url": url + "/subscriptions", "organizations_url": url + "/orgs",
		"repos_url": url + "/repos", "events_url": url + "/events{/privacy}", "received_events_url": url + "/received_events",
	}
}

func (s Site) Organization(owner string) rest.Object {
	url := s.API("/orgs/%s", owner)
	return rest.Object{
		"login": owner, "id": state.IDOf(owner), "node_id": fmt.Sprintf("O_%d", state.IDOf(owner)), "url": url, "description": "",
		"avatar_url": fmt.Sprintf("%s/avatars/u/%d", s.URL, state.IDOf(owner)), "repos_url": url + "/repos", "events_url": url + "/events",
		"hooks_url": url + "/hooks", "issues_url": url + "/issues", "members_url": url + "/members{/member}",
		"public_members_url": url + "/public_members{/member}",
	}
}

// repositoryURLs are what a repository's own address goes on with in each of its addresses.
var repositoryURLs = map[string]string{
	"url": "", "archive_url": "/{archive_format}{/ref}", "assignees_url": "/assignees{/user}", "blobs_url": "/git/blobs{/sha}",
	"branches_url": "/branches{/branch}", "collaborators_url": "/collaborators{/collaborator}", "comments_url": "/comments{/number}",
	"commits_url": "/commits{/sha}", "compare_url": "/compare/{base}...{head}", "contents_url": "/contents/{+path}",
	"contributors_url": "/contributors", "deployments_url": "/deployments", "downloads_url": "/downloads", "events_url": "/events",
	"forks_url": "/forks", "git_commits_url": "/git/commits{/sha}", "git_refs_url": "/git/refs{/sha}", "git_tags_url": "/git/tags{/sha}",
	"hooks_url": "/hooks", "issue_comment_url": "/issues/comments{/number}", "issue_events_url": "/issues/events{/number}",
	"issues_url": "/issues{/number}", "keys_url": "/keys{/key_id}", "labels_url": "/labels{/name}", "languages_url": "/languages",
	"merges_url": "/merges", "milestones_url": "/milestones{/number}", "notifications_url": "/notifications{?since,all,participating}",
	"pulls_url": "/pulls{/number}", "releases_url": "/releases{/id}", "stargazers_url": "/stargazers", "statuses_url": "/statuses/{sha}",
	"subscribers_url": "/subscribers", "subscription_url": "/subscription", "tags_url": "/tags", "teams_url": "/teams",
	"trees_url": "/git/trees{/sha}",
}

// minimalRepository is a repository as it is shown within a run. fork says whether it is one.
func (s Site) minimalRepository(repository string, fork bool) rest.Object {
	owner, name, _ := strings.Cut(repository, "/")
	o := rest.Object{
		"id": state.IDOf(repository), "node_id": fmt.Sprintf("R_%d", state.IDOf(repository)), "name": name, "full_name": repository, "private": true,
		"owner": s.User(owner, "Organization"), "html_url": s.URL + "/" + repository, "description": nil, "fork": fork,
	}
	for key, path := range repositoryURLs {
		o[key] = s.API("/repos/%s", repository) + path
	}
	return o
}

// Repository is the repository itself, as a delivery shows it.
func (s Site) Repository(repository string) rest.Object {
	o := s.minimalRepository(repository, false)
	at := s.Since.UTC().Format(time.RFC3339)
	more := rest.Object{
		"default_branch": state.Branch, "visibility": "private", "archived": false, "disabled": false, "is_template": false,
		"web_commit_signoff_required": false, "has_downloads": true, "has_issues": true, "has_pages": false, "has_projects": true,
		"has_wiki": true, "homepage": nil, "language": nil, "license": nil, "mirror_url": nil, "topics": []string{}, "size": 0,
		"forks": 0, "forks_count": 0, "open_issues": 0, "open_issues_count": 0, "stargazers_count": 0, "watchers": 0, "watchers_count": 0,
		"created_at": at, "updated_at": at, "pushed_at": at, "svn_url": s.URL + "/" + repository,
		"clone_url": s.URL + "/" + repository + ".git", "git_url": gitURL(s.URL, repository), "ssh_url": "git@localhost:" + repository + ".git",
	}
	maps.Copy(o, more)
	return o
}

func gitURL(base, repository string) string {
	_, host, _ := strings.Cut(base, "://")
	return "git://" + host + "/" + repository + ".git"
}
