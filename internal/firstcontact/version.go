package firstcontact

import (
	"context"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var versionCheck = check{
	name: "version",
	does: "registers a runner whose version GitHub refuses",
	without: func(o Options) string {
		if o.RefusedRunner == "" {
			return "no --refused-runner was given"
		}
		return ""
	},
	assumptions: []findings.Assumption{
		{
			Name:     "refused-version",
			Text:     "The words with which GitHub refuses a version, at registration or to a listener, are those that the agent reads as such.",
			ReliedOn: "internal/agent/cause.go: RefusedBy guesses at \"deprecated\" and \"minimum version\"",
		},
	},
	run: checkVersion,
}

// deprecatedVariable has the listener end with exit code 7 (actions/runner 2.336, src/Runner.Listener/Program.cs:142-170).
const deprecatedVariable = "ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE"

func checkVersion(ctx context.Context, s *session) error {
	r, err := s.newRunner(s.RefusedRunner)
	if err != nil {
		return err
	}
	s.Say("runner %s is of version %s", r.name, versionOf(s.RefusedRunner))
	output, code, _, err := r.tryRegister(ctx, s.name("label"))
	if err != nil {
		return err
	}
	where := "config.sh"
	if code == 0 {
		where = "the listener"
		l, err := r.start(deprecatedVariable + "=true")
		if err != nil {
			return err
		}
		_, ended, err := l.awaitEnd(ctx, s.Times.Patience)
		if err != nil {
			return err
		}
		if !ended {
			s.Leave("refused-version", "version %s listens: give an older one", versionOf(s.RefusedRunner))
			return nil
		}
		output, code = l.output(), l.code()
	}
	s.Decide("refused-version", code == agent.CodeDeprecated || agent.RefusedBy(output) == lifecycle.CauseVersion,
		"%s ended with exit code %d and said: %s", where, code, lastLines(output))
	return nil
}
