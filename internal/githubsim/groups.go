package githubsim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// group is a runner group, of every organization.
type group struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

func (s *Server) groupName(id int64) string {
	if id == state.HostedGroupID {
		return state.HostedGroupName
	}
	for _, g := range s.groups() {
		if g.ID == id {
			return g.Name
		}
	}
	return state.GroupName
}

// groupID is the id of a group by its name, 0 if there is none.
func (s *Server) groupID(name string) int64 {
	i := slices.IndexFunc(s.extraGroups, func(g group) bool { return strings.EqualFold(g.Name, name) })
	if i < 0 {
		return 0
	}
	return s.extraGroups[i].ID
}

func (s *Server) groups() []group {
	return slices.Concat([]group{{state.GroupID, state.GroupName}}, s.extraGroups)
}

// hasGroup reports whether a runner of the scope may be in the group: a repository has the default one alone.
func (s *Server) hasGroup(org bool, id int64) bool {
	return id == state.GroupID || org && slices.ContainsFunc(s.extraGroups, func(g group) bool { return g.ID == id })
}

func (s *Server) listGroups(r *http.Request) (*rest.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	url := s.site().API("/orgs/%s/actions/runner-groups", r.PathValue("org"))
	list := []rest.Object{}
	for _, g := range s.groups() {
		list = append(list, rest.Object{
			"id": g.ID, "name": g.Name, "visibility": "all", "default": g.ID == state.GroupID, "inherited": false, "allows_public_repositories": false,
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
		if g.ID <= state.GroupID || g.Name == "" {
			return nil, rest.Problem(http.StatusUnprocessableEntity, "a group needs a name and an id above %d", state.GroupID)
		}
	}
	return nil, s.change(func() error {
		s.extraGroups = q.Groups
		s.put(state.KindGroups, 0, q.Groups)
		return nil
	})
}
