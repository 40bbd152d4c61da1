package firstcontact

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/findings"
)

var idleCheck = check{
	name: "idle",
	does: "watches a just-in-time runner and one of config.sh, which listen and have no job",
	without: func(o Options) string {
		if o.Quick {
			return "--quick was given"
		}
		return ""
	},
	assumptions: []findings.Assumption{
		{
			Name:     "idle-jit-removed",
			Text:     "GitHub removes a just-in-time runner that listens without a job, within ten minutes.",
			ReliedOn: "docs/configuration.md: jobs.minimum keeps hosts that are not registered",
		},
		{
			Name:     "idle-jit-listener",
			Text:     "Its listener then ends with exit code 0 or 1.",
			ReliedOn: "internal/agent/decide_serve.go: leftWithoutJob",
		},
		{
			Name:     "idle-runner-stays",
			Text:     "A runner of config.sh that listens without a job is still registered and online by then, with its labels.",
			ReliedOn: "internal/lifecycle/standby.go: a host listens for a day before it registers again",
		},
	},
	run: checkIdle,
}

func checkIdle(ctx context.Context, s *session) error {
	standby, err := s.newRunner(s.Runner)
	if err != nil {
		return err
	}
	label := s.name("label")
	if err := standby.register(ctx, label); err != nil {
		return err
	}
	if _, err := standby.listen(ctx); err != nil {
		return err
	}
	if err := watchIdle(ctx, s); err != nil {
		return err
	}
	got, err := s.gh.runner(ctx, standby.id)
	if unless(err, 404) == nil {
		s.Decide("idle-runner-stays", err == nil && got.Status == "online" && slices.Equal(got.labels(), []string{label}),
			"%s; it is %s, with the labels %s", answerOf(err), cmp.Or(got.Status, "gone"), strings.Join(got.labels(), ", "))
	}
	return unless(err, 404)
}

// watchIdle watches a just-in-time runner.
func watchIdle(ctx context.Context, s *session) error {
	r, err := s.newRunner(s.Runner)
	if err != nil {
		return err
	}
	j, err := s.gh.justInTime(ctx, r.name, s.name("label"))
	if err != nil {
		return err
	}
	l, err := r.listen(ctx, inputPrefix+"JITCONFIG="+j.Config)
	if err != nil {
		return err
	}
	since, _ := l.printed(lineListening)
	_, gone, err := s.await(ctx, s.Times.Idle, "the removal of an idle just-in-time runner", func() (bool, error) {
		_, err := s.gh.runner(ctx, j.Runner.ID)
		return statusOf(err) == 404, unless(err, 404)
	})
	if err != nil {
		return err
	}
	if !gone {
		s.Decide("idle-jit-removed", false, "it was there still, %s after it began to listen", findings.Seconds(time.Since(since)))
		s.Leave("idle-jit-listener", "the runner was not removed")
		return nil
	}
	s.Decide("idle-jit-removed", true, "it was gone %s after it began to listen", findings.Seconds(time.Since(since)))
	return l.decideEnd(ctx, "idle-jit-listener", func() bool { return l.code() == 0 || l.code() == 1 })
}
