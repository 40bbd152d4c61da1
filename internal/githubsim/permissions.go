package githubsim

import (
	"net/http"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// errPermission is GitHub's answer to a token of an installation that lacks a permission.
var errPermission = rest.Problem(http.StatusForbidden, "Resource not accessible by integration")

// permissionOf is the permission that a call needs of an installation, as GitHub's reference says for each call ("Permissions required for GitHub Apps");
// empty: none beyond what every installation has.
func permissionOf(pattern string) (name string, writes bool) {
	method, path, _ := strings.Cut(pattern, " ")
	writes = method != http.MethodGet
	below, inRepository := strings.CutPrefix(path, "/repos/{owner}/{repo}")
	switch {
	case strings.HasSuffix(path, "/installation"):
		return "", false
	case strings.HasPrefix(path, "/orgs/"):
		return "organization_self_hosted_runners", writes
	case !inRepository:
		return "", false
	case strings.HasPrefix(below, "/actions/runners"):
		return "administration", writes
	case strings.HasPrefix(below, "/actions/"):
		return "actions", writes
	case strings.Contains(below, "check-runs"):
		return "checks", writes
	}
	return "contents", writes
}

// permits reports whether the permissions of a token are enough for a call.
func permits(has map[string]string, pattern string) bool {
	name, writes := permissionOf(pattern)
	return name == "" || has[name] == "write" || has[name] == "read" && !writes
}
