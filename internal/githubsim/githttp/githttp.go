// Package githttp serves repositories to git over HTTP (gitprotocol-http(5)), by git's own program.
package githttp

import (
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// programs is the directory of git's own programs.
var programs = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("git", "--exec-path").Output()
	return strings.TrimSpace(string(out)), err
})

// Backend serves the bare repositories below a directory to each caller, and takes no pushes. Without git it is an error.
func Backend(root string) (http.Handler, error) {
	dir, err := programs()
	if err != nil {
		return nil, err
	}
	return &cgi.Handler{Path: filepath.Join(dir, "git-http-backend"), Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}}, nil
}
