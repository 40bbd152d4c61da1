package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/github/jitconfig"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// FindRunner finds a registration by its exact name: lifecycle.ErrNotFound if
// the repository, or its organization, has none.
func (c *Client) FindRunner(ctx context.Context, repository, name string) (lifecycle.Runner, error) {
	return c.find(ctx, housekeeping, repository, name)
}

func (c *Client) find(ctx context.Context, l lane, repository, name string) (lifecycle.Runner, error) {
	op, err := c.about("find runner "+name, repository, l, reads)
	if err != nil {
		return lifecycle.Runner{}, err
	}
	// GitHub filters by name, an older Enterprise Server does not: there the runner may be on any page.
	for page := 1; page != 0; {
		runners, next, err := c.list(ctx, op, api.ListRunnersOptions{
			Name: &name, ListOptions: api.ListOptions{Page: page, PerPage: maxPerPage}})
		if err != nil {
			return lifecycle.Runner{}, err
		}
		for _, r := range runners {
			if r.Name == name {
				return r, nil
			}
		}
		page = next
	}
	return lifecycle.Runner{}, fmt.Errorf("%s: %w", op, lifecycle.ErrNotFound)
}

// Runners pages through the registrations of a repository, or of its organization. A
// page's token is its number, so all pages of one listing must have the same limit.
func (c *Client) Runners(ctx context.Context, repository string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	op, err := c.about("list runners", repository, housekeeping, reads)
	if err != nil {
		return lifecycle.Page[lifecycle.Runner]{}, err
	}
	number := 1
	if page.After != "" {
		n, err := strconv.Atoi(page.After)
		if err != nil || n < 2 {
			return lifecycle.Page[lifecycle.Runner]{}, fmt.Errorf("%s: %q is not the token of a page", op, page.After)
		}
		number = n
	}
	runners, next, err := c.list(ctx, op, api.ListRunnersOptions{
		ListOptions: api.ListOptions{Page: number, PerPage: min(page.Size(), maxPerPage)}})
	if err != nil {
		return lifecycle.Page[lifecycle.Runner]{}, err
	}
	list := lifecycle.Page[lifecycle.Runner]{Items: runners}
	if next != 0 {
		list.Next = strconv.Itoa(next)
	}
	return list, nil
}

// list reads one page and tells the number of the next; 0: it was the last.
func (c *Client) list(ctx context.Context, op operation, options api.ListRunnersOptions) ([]lifecycle.Runner, int, error) {
	list, next, err := listPage(ctx, c, op, options.ListOptions,
		func(ctx context.Context, a *api.Client, _ api.ListOptions) (*api.Runners, *api.Response, error) {
			return op.at.listRunners(ctx, a, &options)
		})
	if err != nil {
		return nil, 0, err
	}
	runners := make([]lifecycle.Runner, 0, len(list.Runners))
	for _, r := range list.Runners {
		runners = append(runners, registration(r))
	}
	return runners, next, nil
}

func registration(r *api.Runner) lifecycle.Runner {
	return lifecycle.Runner{ID: r.GetID(), Name: r.GetName(), Online: r.GetStatus() == "online", Busy: r.GetBusy()}
}

// Runner asks for a registration by its id: lifecycle.ErrNotFound if there is none. GitHub answers the same
// for a repository that is not visible, so that this counts only together with a listing that went well.
func (c *Client) Runner(ctx context.Context, repository string, id int64) (lifecycle.Runner, error) {
	op, err := c.about("find runner "+strconv.FormatInt(id, 10), repository, housekeeping, reads)
	if err != nil {
		return lifecycle.Runner{}, err
	}
	found, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (*api.Runner, *api.Response, error) {
		return op.at.getRunner(ctx, a, id)
	})
	switch {
	case err != nil:
		return lifecycle.Runner{}, orNotFound(op, err)
	case found.GetID() != id:
		return lifecycle.Runner{}, unavailable(op, 0, errors.New("the answer is about another runner"))
	}
	return registration(found), nil
}

// DeleteRunner removes a registration. One that is gone is no error; one that
// runs a job is lifecycle.ErrBusy.
func (c *Client) DeleteRunner(ctx context.Context, repository string, id int64) error {
	op, err := c.about("delete runner "+strconv.FormatInt(id, 10), repository, registering, writes)
	if err != nil {
		return err
	}
	err = c.do(ctx, op, func(ctx context.Context, a *api.Client) (*api.Response, error) {
		return op.at.removeRunner(ctx, a, id)
	})
	switch {
	case hasStatus(err, http.StatusNotFound):
		return nil
	case hasStatus(err, http.StatusUnprocessableEntity):
		return fmt.Errorf("%s: %w: it runs a job", op, lifecycle.ErrBusy)
	}
	return err
}

// SetLabels replaces the custom labels of a runner. From then on GitHub gives it the jobs that name these labels (REST API, "Set
// custom labels for a self-hosted runner for a repository"). A repeat changes nothing. One that is gone is lifecycle.ErrNotFound.
func (c *Client) SetLabels(ctx context.Context, repository string, id int64, labels []string) error {
	op, err := c.about("set the labels of runner "+strconv.FormatInt(id, 10), repository, registering, labelWrites)
	if err != nil {
		return err
	}
	return orNotFound(op, c.do(ctx, op, func(ctx context.Context, a *api.Client) (*api.Response, error) {
		return op.at.setLabels(ctx, a, id, labels)
	}))
}

const (
	// jitLifetime is how long a JIT configuration can be started with: GitHub
	// removes a runner that has not begun within it.
	jitLifetime = time.Hour
	// maxTakeovers bounds how often a name is taken over in one call. Once
	// suffices, unless GitHub's own parts do not agree yet.
	maxTakeovers = 3
	// workFolder is GitHub's own default, named because the parameter has none in older Enterprise Servers.
	workFolder = "_work"
)

// JIT registers a runner for exactly one job, and returns the configuration that its listener starts with,
// and the id of the registration. The runner will not update itself: see package jitconfig. A name that an earlier call took, whose answer was lost, is taken over:
// GitHub answers 409 to it, also when it had itself failed to answer the first time (runs-on/runs-on#546).
// While the runner of that name runs a job it is lifecycle.ErrBusy.
func (c *Client) JIT(ctx context.Context, repository, name string, labels []string) (lifecycle.Registration, int64, error) {
	op, err := c.about("register runner "+name, repository, registering, registrations)
	if err != nil {
		return lifecycle.Registration{}, 0, err
	}
	group, err := c.groupID(ctx, op.at)
	if err != nil {
		return lifecycle.Registration{}, 0, fmt.Errorf("%s: %w", op, err)
	}
	folder := workFolder
	op.kind = jitCalls
	request := &api.GenerateJITConfigRequest{Name: name, RunnerGroupID: group, Labels: labels, WorkFolder: &folder}
	for takeovers := 0; ; takeovers++ {
		r, id, err := c.generateJIT(ctx, op, request)
		switch {
		case hasStatus(err, http.StatusConflict) && takeovers < maxTakeovers:
		case hasStatus(err, http.StatusConflict):
			return r, id, unavailable(op, 0, errors.New("GitHub says that the name is taken, and that no runner has it"))
		case errors.Is(err, lifecycle.ErrRefused):
			c.forgetGroup(op.at) // it may be the group that is refused
			return r, id, err
		default:
			return r, id, err
		}
		if err := c.vacate(ctx, repository, name); err != nil {
			return lifecycle.Registration{}, 0, fmt.Errorf("%s: take over the name: %w", op, err)
		}
	}
}

func (c *Client) generateJIT(ctx context.Context, op operation, request *api.GenerateJITConfigRequest) (lifecycle.Registration, int64, error) {
	made, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) (*api.JITRunnerConfig, *api.Response, error) {
		return op.at.generateJIT(ctx, a, request)
	})
	if err == nil && (made.GetEncodedJITConfig() == "" || made.GetRunner().GetID() == 0) {
		err = unavailable(op, 0, errors.New("the answer has no configuration or no runner"))
	}
	if err != nil {
		return lifecycle.Registration{}, 0, err
	}
	config, err := jitconfig.DisableUpdate(made.GetEncodedJITConfig())
	if err != nil { // it would be the same at another try
		return lifecycle.Registration{}, 0, fmt.Errorf("%s: %w: %w", op, lifecycle.ErrRefused, err)
	}
	return lifecycle.Registration{
		Kind: lifecycle.RegistrationJIT, URL: c.web + "/" + op.at.String(),
		Secret: lifecycle.Secret(config), ExpiresAt: time.Now().Add(jitLifetime),
	}, made.GetRunner().GetID(), nil
}

// vacate deletes the runner of a name, unless it is busy.
func (c *Client) vacate(ctx context.Context, repository, name string) error {
	runner, err := c.find(ctx, registering, repository, name)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return nil // gone already
	case err != nil:
		return err
	case runner.Busy:
		return fmt.Errorf("runner %s: %w: it runs a job", name, lifecycle.ErrBusy)
	}
	return c.DeleteRunner(ctx, repository, runner.ID)
}

const (
	// defaultGroup is the id of the group Default, the only one of a repository.
	defaultGroup = 1
	// groupFor is how long a group's id is known; one that is deleted is found out at once, by a refusal.
	groupFor = time.Hour
	// maxGroupPages bounds the listing: an organization has some dozens of groups.
	maxGroupPages = 20
)

// groupID is the id of the configured runner group.
func (c *Client) groupID(ctx context.Context, at place) (int64, error) {
	if c.runnerGroup == "" {
		return defaultGroup, nil
	}
	return c.groups.get(ctx, at.key(), func(ctx context.Context) (int64, time.Time, error) {
		id, err := c.findGroup(ctx, at)
		return id, time.Now().Add(groupFor), err
	})
}

func (c *Client) forgetGroup(at place) { c.groups.forget(at.key()) }

func (c *Client) findGroup(ctx context.Context, at place) (int64, error) {
	op := operation{what: fmt.Sprintf("find runner group %q", c.runnerGroup), at: at, lane: registering}
	var found *api.RunnerGroup
	err := listPages(ctx, c, op, maxGroupPages,
		func(ctx context.Context, a *api.Client, page api.ListOptions) (*api.RunnerGroups, *api.Response, error) {
			return a.Actions.ListOrganizationRunnerGroups(ctx, at.owner, &api.ListOrgRunnerGroupOptions{ListOptions: page})
		},
		func(list *api.RunnerGroups) bool {
			i := slices.IndexFunc(list.RunnerGroups, func(g *api.RunnerGroup) bool { return g.GetName() == c.runnerGroup })
			if i >= 0 {
				found = list.RunnerGroups[i]
			}
			return i >= 0
		})
	if err != nil || found != nil {
		return found.GetID(), err
	}
	return 0, fmt.Errorf("%s: %w", op, &StatusError{Status: http.StatusNotFound,
		Hint: "the organization has no runner group of that name, or it is not visible to the credentials"})
}

// Release is a version of actions/runner.
type Release struct {
	Version     string // such as "2.317.0"
	PublishedAt time.Time
}

// RunnerReleases lists the newest releases of actions/runner, 100 at most, the newest first. An Enterprise
// Server may not have the repository: lifecycle.ErrNotFound.
func (c *Client) RunnerReleases(ctx context.Context) ([]Release, error) {
	op := operation{what: "list releases of actions/runner", lane: housekeeping, as: c.publicCredential}
	list, err := fetch(ctx, c, op, func(ctx context.Context, a *api.Client) ([]*api.RepositoryRelease, *api.Response, error) {
		return a.Repositories.ListReleases(ctx, "actions", "runner", &api.ListOptions{PerPage: maxPerPage})
	})
	if err != nil {
		return nil, orNotFound(op, err)
	}
	var releases []Release
	for _, r := range list {
		if !r.GetDraft() && !r.GetPrerelease() {
			releases = append(releases, Release{strings.TrimPrefix(r.GetTagName(), "v"), r.GetPublishedAt().UTC()})
		}
	}
	return releases, nil
}

// publicCredential chooses the credential for public data: the token, or the known
// installation with the most calls left, or else none, which has 60 calls an hour.
func (c *Client) publicCredential(context.Context) (*credential, error) {
	if c.token != nil {
		return c.token, nil
	}
	best, most := c.anonymous, -1
	for _, a := range c.apps {
		for _, who := range a.installations() {
			if left := who.budget.left(ordinary, time.Now()); left > most {
				best, most = who, left
			}
		}
	}
	return best, nil
}
