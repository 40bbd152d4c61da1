package firstcontact

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var tokenCheck = check{
	name: "token",
	does: "removes a runner with an expired remove token",
	without: func(o Options) string {
		if !o.Slow {
			return "--slow was not given: a token lives for an hour"
		}
		return ""
	},
	assumptions: []findings.Assumption{
		{
			Name:     "expired-token",
			Text:     "config.sh remove with an expired token fails with words that the agent reads as GitHub's refusal, not as success or a job.",
			ReliedOn: "internal/agent/cause.go: RemovedBefore reads a 404 as success, so an expired token must be answered otherwise",
		},
	},
	run: checkToken,
}

// tokenMargin is added to the end of a token's life, for clocks that differ.
const tokenMargin = time.Minute

func checkToken(ctx context.Context, s *session) error {
	r, err := s.newRunner(s.Runner)
	if err != nil {
		return err
	}
	if err := r.register(ctx, s.name("label")); err != nil {
		return err
	}
	t, err := s.gh.removeToken(ctx)
	if err != nil {
		return err
	}
	life := s.Times.TokenLife
	if life == 0 {
		life = time.Until(t.ExpiresAt) + tokenMargin
	}
	if _, _, err := s.watch(ctx, life, "the token to expire", func() (bool, error) { return false, nil }); err != nil {
		return err
	}
	output, code, _, err := r.config(ctx, t.Token, "remove", "--unattended")
	if err != nil {
		return err
	}
	refused := code != 0 && agent.RefusedBy(output) == lifecycle.CauseGitHub && !agent.RemovedBefore(output) && !agent.JobAssigned(output)
	s.Decide("expired-token", refused, "exit code %d: %s", code, lastLines(output))
	return nil
}
