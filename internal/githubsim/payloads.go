package githubsim

import (
	"crypto/sha1"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// What every run of the stand-in has in common.
const (
	workflowPath = ".github/workflows/standin.yml"
	branch       = "main"
	actor        = "remuda-standin"
	actorEmail   = "remuda-standin@example.com"
)

// idOf is a stable id for something the stand-in has no table of: a repository, a user.
func idOf(name string) int64 {
	h := fnv.New32a()
	h.Write([]byte(strings.ToLower(name)))
	return int64(h.Sum32()%1_000_000_000) + 1
}

// shaOf is the commit that a repository is at.
func shaOf(repository string) string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(strings.ToLower(repository))))
}

func (s *Server) api(format string, args ...any) string {
	return s.baseURL + "/api/v3" + fmt.Sprintf(format, args...)
}

func (s *Server) runnerObject(r *runner) rest.Object {
	status := "offline"
	if s.online(r) {
		status = "online"
	}
	return rest.Object{
		"id": r.ID, "runner_group_id": r.group(), "name": r.Name, "os": "linux", "status": status, "busy": r.JobID != 0,
		"ephemeral": r.Ephemeral, "labels": labelObjects(r.Labels),
	}
}

func labelObjects(labels []label) []rest.Object {
	out := []rest.Object{}
	for _, l := range labels {
		out = append(out, rest.Object{"id": l.ID, "name": l.Name, "type": l.Type})
	}
	return out
}
