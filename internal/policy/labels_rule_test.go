package policy_test

import (
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
)

// A label brings jobs of others to a host, so a rule names those that may be
// asked for.
func TestWhichLabelsARunMayGiveItsHosts(t *testing.T) {
	for name, c := range map[string]struct {
		labels, allowed []string
		refused         string
	}{
		"none":                           {nil, nil, ""},
		"what every runner has":          {[]string{"self-hosted", "Linux", "x64"}, nil, ""},
		"its resource class":             {[]string{"remuda-large"}, nil, ""},
		"another class":                  {[]string{"remuda-small"}, nil, "remuda-small"},
		"a label that is not allowed":    {[]string{"prod-deploy"}, nil, "prod-deploy"},
		"one that is allowed":            {[]string{"gpu-a100"}, []string{"gpu-*"}, ""},
		"one beside it":                  {[]string{"gpu-a100", "cpu"}, []string{"gpu-*"}, "cpu"},
		"the id of another run":          {[]string{"7777"}, nil, "7777"},
		"the id of a run, allowed by *":  {[]string{"7777"}, []string{"*"}, "7777"},
		"a control character in a label": {[]string{"a\nb"}, nil, `a\nb`},
	} {
		t.Run(name, func(t *testing.T) {
			rules := policy.Rules{{RepositoryID: 1, Repository: "acme/app", MaxHosts: 1, Labels: c.allowed}}
			_, verdict := rules.Admit(
				policy.Origin{Repository: "acme/app", RepositoryID: 1, Event: "push", Fork: policy.ForkNo},
				lifecycle.Spec{Pool: "default", ResourceClass: "large", Count: 1, UsageClass: lifecycle.UsageOnDemand, Labels: c.labels})
			if verdict.Allowed != (c.refused == "") || !strings.Contains(verdict.Reason, c.refused) {
				t.Errorf("got %+v", verdict)
			}
		})
	}
}
