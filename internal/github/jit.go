package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

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
// and the id of the registration. A name that an earlier call took, whose answer was lost, is taken over:
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
	return lifecycle.Registration{
		Kind: lifecycle.RegistrationJIT, URL: c.web + "/" + op.at.String(),
		Secret: lifecycle.Secret(made.GetEncodedJITConfig()), ExpiresAt: time.Now().Add(jitLifetime),
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
