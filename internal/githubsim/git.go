package githubsim

import (
	"net/http"
	"path/filepath"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/githttp"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// gitRoutes are those by which git fetches (gitprotocol-http(5)). A fetch is of git itself, from a directory of bare repositories.
var gitRoutes = []string{"GET /{owner}/{name}/info/refs", "POST /{owner}/{name}/git-upload-pack"}

// serveGit answers git. All repositories are private here: GitHub asks a caller without credentials for some, and says of a repository that the caller
// cannot read that there is none.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
	name, isGit := strings.CutSuffix(r.PathValue("name"), ".git")
	repository := strings.ToLower(r.PathValue("owner") + "/" + name)
	_, password, _ := r.BasicAuth()
	s.mu.Lock()
	dir, may := s.gitDir, s.mayRead(password, repository)
	s.mu.Unlock()
	switch {
	case password == "":
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "Repository not found.", http.StatusUnauthorized)
		return
	case dir == "" || !isGit || !may || !state.IsRepository(repository):
		http.Error(w, "Repository not found.", http.StatusNotFound)
		return
	}
	backend, err := githttp.Backend(dir)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	r.URL.Path = "/" + repository + ".git" + strings.TrimPrefix(r.URL.Path, "/"+r.PathValue("owner")+"/"+r.PathValue("name"))
	backend.ServeHTTP(w, r)
}

// mayRead reports whether a password of git may read the contents of a repository.
func (s *Server) mayRead(password, repository string) bool {
	if !strings.HasPrefix(password, installationPrefix) {
		return password != "" // of a person
	}
	c, err := s.identifyInstallation(password)
	return err == nil && c.token.Covers(repository) && c.token.Permissions["contents"] != ""
}

// standinGit sets the directory of the repositories that git fetches: OWNER/NAME.git, in lower case. At first there is none.
func (s *Server) standinGit(r *http.Request) (*rest.Answer, error) {
	var q struct {
		Dir string `json:"dir"`
	}
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(q.Dir) {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "dir is not an absolute path")
	}
	return nil, s.change(func() error {
		s.gitDir = q.Dir
		return nil
	})
}
