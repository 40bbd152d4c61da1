package firstcontact

import (
	"context"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/findings"
)

var defaultsCheck = check{
	name: "defaults",
	does: "registers runners with --no-default-labels and as just-in-time runners, and reads their labels",
	assumptions: []findings.Assumption{
		{
			Name:     "no-default-labels",
			Text:     "config.sh --no-default-labels registers a runner that has the labels of --labels alone.",
			ReliedOn: "internal/host/register.go: a host takes no job that names default labels alone",
		},
		{
			Name:     "default-labels-named",
			Text:     "Default labels that --labels names are registered beside --no-default-labels.",
			ReliedOn: "internal/host/register.go: pools with default_labels: true",
		},
		{
			Name:     "jit-labels",
			Text:     "A just-in-time runner has the labels of the call alone.",
			ReliedOn: "internal/github/runners.go: job pools",
		},
	},
	run: checkDefaults,
}

func checkDefaults(ctx context.Context, s *session) error {
	own := s.name("own")
	for name, want := range map[string][]string{
		"no-default-labels":    {own},
		"default-labels-named": {"linux", own, "self-hosted", "x64"},
	} {
		r, err := s.newRunner(s.Runner)
		if err != nil {
			return err
		}
		if err := r.register(ctx, strings.Join(want, ",")); err != nil {
			return err
		}
		got, err := s.gh.runner(ctx, r.id)
		if err != nil {
			return err
		}
		s.decideLabels(name, want, got)
	}
	j, err := s.gh.justInTime(ctx, s.name("jit"), own)
	if err != nil {
		return err
	}
	s.decideLabels("jit-labels", []string{own}, j.Runner)
	return s.gh.deleteRunner(ctx, j.Runner.ID)
}

// decideLabels compares labels without regard to case, as GitHub does.
func (s *session) decideLabels(name string, want []string, got registered) {
	lower := func(list []string) []string {
		out := strings.Split(strings.ToLower(strings.Join(list, ",")), ",")
		slices.Sort(out)
		return out
	}
	s.Decide(name, slices.Equal(lower(want), lower(got.labels())), "the runner has %s", strings.Join(got.labels(), ", "))
}
