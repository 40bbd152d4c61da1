package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	api "github.com/google/go-github/v62/github"

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
	case hasStatus(err, http.StatusNotFound):
		return lifecycle.Runner{}, fmt.Errorf("%s: %w", op, lifecycle.ErrNotFound)
	case err != nil:
		return lifecycle.Runner{}, err
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
