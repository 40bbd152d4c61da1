package githubsim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
)

// The groups that are always there.
const (
	groupID   = 1
	groupName = "Default"

	hostedGroupID   = 0 // of GitHub's own machines
	hostedGroupName = "GitHub Actions"
)

// group is a runner group, of every organisation.
type group struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

func (r *runner) group() int64 {
	if r.Hosted {
		return hostedGroupID
	}
	return cmp.Or(r.GroupID, groupID)
}

func (s *Server) groupName(id int64) string {
	if id == hostedGroupID {
		return hostedGroupName
	}
	for _, g := range s.groups() {
		if g.ID == id {
			return g.Name
		}
	}
	return groupName
}

func (s *Server) groups() []group {
	return slices.Concat([]group{{groupID, groupName}}, s.extraGroups)
}

// hasGroup reports whether a runner of the scope may be in the group: a repository has the default one alone.
func (s *Server) hasGroup(org bool, id int64) bool {
	return id == groupID || org && slices.ContainsFunc(s.extraGroups, func(g group) bool { return g.ID == id })
}

func (s *Server) listGroups(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	url := s.api("/orgs/%s/actions/runner-groups", r.PathValue("org"))
	list := []rest.Object{}
	for _, g := range s.groups() {
		list = append(list, rest.Object{
			"id": g.ID, "name": g.Name, "visibility": "all", "default": g.ID == groupID, "inherited": false, "allows_public_repositories": false,
			"runners_url": fmt.Sprintf("%s/%d/runners", url, g.ID), "hosted_runners_url": fmt.Sprintf("%s/%d/hosted-runners", url, g.ID),
			"restricted_to_workflows": false, "selected_workflows": []string{}, "workflow_restrictions_read_only": false,
		})
	}
	return s.page(r, "runner_groups", list), nil
}

// standinGroups replaces the groups beside the default one.
func (s *Server) standinGroups(r *http.Request) (*rest.Answer, error) {
	var q struct {
		Groups []group `json:"groups"`
	}
	if err := rest.Decode(r, &q, true); err != nil {
		return nil, err
	}
	for _, g := range q.Groups {
		if g.ID <= groupID || g.Name == "" {
			return nil, rest.Problem(http.StatusUnprocessableEntity, "a group needs a name and an id above %d", groupID)
		}
	}
	return nil, s.change(func() error {
		s.extraGroups = q.Groups
		s.put(kindGroups, 0, q.Groups)
		return nil
	})
}
