package github

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	api "github.com/google/go-github/v62/github"
)

// place is where the hosts of a repository register their runners: the repository or its organization.
type place struct {
	owner, name  string
	organization bool
}

// String is "owner/name", or "owner" where runners belong to the organization.
func (p place) String() string {
	if p.organization {
		return p.owner
	}
	return p.owner + "/" + p.name
}

// key is the same for all ways to write a place: GitHub does not tell the cases apart.
func (p place) key() string { return strings.ToLower(p.String()) }

// mintedToken is a token for registrations, or one for their removal.
type mintedToken interface {
	GetToken() string
	GetExpiresAt() api.Timestamp
}

func (p place) createRegistrationToken(ctx context.Context, a *api.Client) (mintedToken, *api.Response, error) {
	if p.organization {
		return a.Actions.CreateOrganizationRegistrationToken(ctx, p.owner)
	}
	return a.Actions.CreateRegistrationToken(ctx, p.owner, p.name)
}

func (p place) createRemoveToken(ctx context.Context, a *api.Client) (mintedToken, *api.Response, error) {
	if p.organization {
		return a.Actions.CreateOrganizationRemoveToken(ctx, p.owner)
	}
	return a.Actions.CreateRemoveToken(ctx, p.owner, p.name)
}

func (p place) generateJIT(ctx context.Context, a *api.Client, r *api.GenerateJITConfigRequest) (*api.JITRunnerConfig, *api.Response, error) {
	if p.organization {
		return a.Actions.GenerateOrgJITConfig(ctx, p.owner, r)
	}
	return a.Actions.GenerateRepoJITConfig(ctx, p.owner, p.name, r)
}

func (p place) listRunners(ctx context.Context, a *api.Client, o *api.ListRunnersOptions) (*api.Runners, *api.Response, error) {
	if p.organization {
		return a.Actions.ListOrganizationRunners(ctx, p.owner, o)
	}
	return a.Actions.ListRunners(ctx, p.owner, p.name, o)
}

func (p place) getRunner(ctx context.Context, a *api.Client, id int64) (*api.Runner, *api.Response, error) {
	if p.organization {
		return a.Actions.GetOrganizationRunner(ctx, p.owner, id)
	}
	return a.Actions.GetRunner(ctx, p.owner, p.name, id)
}

func (p place) removeRunner(ctx context.Context, a *api.Client, id int64) (*api.Response, error) {
	if p.organization {
		return a.Actions.RemoveOrganizationRunner(ctx, p.owner, id)
	}
	return a.Actions.RemoveRunner(ctx, p.owner, p.name, id)
}

// setLabels replaces the custom labels of a runner. go-github has no call for it.
func (p place) setLabels(ctx context.Context, a *api.Client, id int64, labels []string) (*api.Response, error) {
	at := "repos/" + p.owner + "/" + p.name
	if p.organization {
		at = "orgs/" + p.owner
	}
	body := struct {
		Labels []string `json:"labels"`
	}{labels}
	request, err := a.NewRequest(http.MethodPut, fmt.Sprintf("%s/actions/runners/%d/labels", at, id), body)
	if err != nil {
		return nil, err
	}
	return a.Do(ctx, request, nil)
}

func (p place) findInstallation(ctx context.Context, a *api.Client) (*api.Installation, *api.Response, error) {
	if p.organization {
		return a.Apps.FindOrganizationInstallation(ctx, p.owner)
	}
	return a.Apps.FindRepositoryInstallation(ctx, p.owner, p.name)
}

// parseURL checks the base URL of an API and ends it with a slash, without
// which the last part of its path would be replaced by that of a call.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		// url.Parse quotes what it was given, which may hold a password.
		return nil, errors.New("the API's URL cannot be parsed; write https://api.github.com or https://HOST/api/v3")
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("the API's URL is not of the form https://HOST/PATH; write https://api.github.com or https://HOST/api/v3")
	case u.User != nil:
		return nil, errors.New("the API's URL holds credentials; configure the token instead")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, fmt.Errorf("the API's URL %s would send the token in plain text; write https", u)
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// webURL is where people find the repositories of an API, and what runners are registered with:
// api.github.com serves those of github.com, an Enterprise Server its own beside /api/v3.
func webURL(base *url.URL) string {
	web := *base
	web.Host = strings.TrimPrefix(base.Host, "api.")
	if web.Host != base.Host && web.Host != "github.com" && !strings.HasSuffix(web.Host, ".ghe.com") {
		web.Host = base.Host
	}
	web.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/api/v3")
	return web.String()
}

var repositoryName = regexp.MustCompile(`^([A-Za-z0-9_-]{1,39})/([A-Za-z0-9._-]{1,100})$`)

// splitRepository refuses what would lead to another path of the API.
func splitRepository(repository string) (owner, name string, err error) {
	m := repositoryName.FindStringSubmatch(repository)
	if m == nil || m[2] == "." || m[2] == ".." {
		return "", "", fmt.Errorf("%q is not a repository; write owner/name", repository)
	}
	return m[1], m[2], nil
}
