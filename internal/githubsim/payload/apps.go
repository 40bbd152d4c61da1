package payload

import (
	"fmt"

	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// App renders a GitHub App as the app sees itself.
func (s Site) App(a *state.App) rest.Object {
	return rest.Object{
		"id": a.ID, "client_id": a.ClientID, "slug": a.Slug, "node_id": fmt.Sprintf("A_%d", a.ID), "name": a.Slug, "description": "",
		"owner": s.User(Actor, "User"), "external_url": s.URL, "html_url": s.URL + "/apps/" + a.Slug,
		"created_at": rest.Time(a.CreatedAt), "updated_at": rest.Time(a.CreatedAt), "permissions": a.Permissions, "events": a.Events,
		"installations_count": len(a.Installations),
	}
}

// Installation renders an app on one account.
func (s Site) Installation(a *state.App, in *state.Installation) rest.Object {
	return rest.Object{
		"id": in.ID, "app_id": a.ID, "client_id": a.ClientID, "app_slug": a.Slug, "account": s.User(in.Owner, "Organization"),
		"target_id": state.IDOf(in.Owner), "target_type": "Organization", "repository_selection": "all", "single_file_name": nil,
		"has_multiple_single_files": false, "single_file_paths": []string{}, "events": a.Events, "permissions": a.Permissions,
		"access_tokens_url": s.API("/app/installations/%d/access_tokens", in.ID), "repositories_url": s.API("/installation/repositories"),
		"html_url":   fmt.Sprintf("%s/organizations/%s/settings/installations/%d", s.URL, in.Owner, in.ID),
		"created_at": rest.Time(in.CreatedAt), "updated_at": rest.Time(in.CreatedAt), "suspended_at": nil, "suspended_by": nil,
	}
}
