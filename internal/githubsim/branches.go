package githubsim

import (
	"net/http"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// commitsOf are the commits of a branch that runs have shown, the last one first; none: there is no such branch. The default branch is always there.
// Tags, pull requests and forks are on no branch of the repository, whatever their names are.
func (s *Server) commitsOf(repository, name string) []string {
	var runs []*state.Run
	for _, r := range s.runs {
		if strings.EqualFold(r.Repository, repository) && !r.FromFork() && r.Ref() == "refs/heads/"+name {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(a, b *state.Run) int { return int(b.ID - a.ID) })
	var commits []string
	for _, r := range runs {
		if !slices.Contains(commits, r.SHA()) {
			commits = append(commits, r.SHA())
		}
	}
	if len(commits) == 0 && name == state.Branch {
		commits = []string{(&state.Run{Repository: repository}).SHA()}
	}
	return commits
}

func (s *Server) getBranch(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repository, name := repositoryOf(r), r.PathValue("branch")
	commits := s.commitsOf(repository, name)
	if len(commits) == 0 {
		return nil, rest.Problem(http.StatusNotFound, "Branch not found")
	}
	protected := slices.Contains(s.protected[strings.ToLower(repository)], name)
	api := s.site().API("/repos/%s/branches/%s", repository, name)
	return rest.OK(rest.Object{
		"name": name, "commit": s.commit(repository, commits[0]), "protected": protected,
		"protection": rest.Object{"enabled": protected, "required_status_checks": rest.Object{
			"enforcement_level": "off", "contexts": []string{}, "checks": []string{},
		}},
		"protection_url": api + "/protection", "_links": rest.Object{"self": api, "html": s.baseURL + "/" + repository + "/tree/" + name},
	}), nil
}

// commit is one of a branch, without its files.
func (s *Server) commit(repository, sha string) rest.Object {
	api := func(path string) string { return s.site().API("/repos/%s/%s", repository, path) }
	person := rest.Object{"name": "octocat", "email": "octocat@example.com", "date": "2026-01-01T00:00:00Z"}
	return rest.Object{
		"sha": sha, "node_id": "C_" + sha, "url": api("commits/" + sha), "html_url": s.baseURL + "/" + repository + "/commit/" + sha,
		"comments_url": api("commits/" + sha + "/comments"), "author": nil, "committer": nil, "parents": []rest.Object{},
		"commit": rest.Object{
			"message": "a commit", "author": person, "committer": person, "comment_count": 0, "url": api("git/commits/" + sha),
			"tree": rest.Object{"sha": sha, "url": api("git/trees/" + sha)},
		},
	}
}

// compare compares two commits of the repository (REST API, "Compare two commits") as far as runs have shown them: whether the one comes before the
// other on a branch, or has left it.
func (s *Server) compare(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repository := repositoryOf(r)
	base, head, ok := strings.Cut(r.PathValue("basehead"), "...")
	if !ok || !s.hasShown(repository, base) || !s.hasShown(repository, head) {
		return nil, rest.ErrNotFound
	}
	status, ahead, behind := "diverged", 1, 1
	switch order := s.order(repository, base, head); {
	case base == head:
		status, ahead, behind = "identical", 0, 0
	case order > 0:
		status, ahead, behind = "behind", 0, order
	case order < 0:
		status, ahead, behind = "ahead", -order, 0
	}
	html := s.baseURL + "/" + repository + "/compare/" + base + "..." + head
	return rest.OK(rest.Object{
		"url": s.site().API("/repos/%s/compare/%s...%s", repository, base, head), "html_url": html, "permalink_url": html, "diff_url": html + ".diff", "patch_url": html + ".patch",
		"base_commit": s.commit(repository, base), "merge_base_commit": s.commit(repository, base),
		"status": status, "ahead_by": ahead, "behind_by": behind, "total_commits": ahead, "commits": []rest.Object{}, "files": []rest.Object{},
	}), nil
}

func (s *Server) hasShown(repository, sha string) bool {
	if slices.Contains(s.commitsOf(repository, state.Branch), sha) {
		return true
	}
	for _, r := range s.runs {
		if strings.EqualFold(r.Repository, repository) && r.SHA() == sha {
			return true
		}
	}
	return false
}

// order is how far head is before base on a branch that has both, negative if it is after it; 0: there is no such branch.
func (s *Server) order(repository, base, head string) int {
	names := map[string]bool{state.Branch: true}
	for _, r := range s.runs {
		if name, ok := strings.CutPrefix(r.Ref(), "refs/heads/"); ok {
			names[name] = true
		}
	}
	for name := range names {
		commits := s.commitsOf(repository, name)
		if b, h := slices.Index(commits, base), slices.Index(commits, head); b >= 0 && h >= 0 {
			return h - b
		}
	}
	return 0
}

// standinProtect replaces which branches of a repository are protected. At first none is, and after a restart none is.
func (s *Server) standinProtect(r *http.Request) (*rest.Answer, error) {
	var q struct {
		Repository string   `json:"repository"`
		Branches   []string `json:"branches"`
	}
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	if !state.IsRepository(q.Repository) || slices.Contains(q.Branches, "") {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "repository is not owner/name, or a branch has no name")
	}
	return nil, s.change(func() error {
		s.protected[strings.ToLower(q.Repository)] = q.Branches
		return nil
	})
}
