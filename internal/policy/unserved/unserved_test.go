package unserved_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/unserved"
)

func TestWhy(t *testing.T) {
	pools := map[string]unserved.Pool{
		"ci":  {PoolLabels: policy.PoolLabels{Own: []string{"remuda-small", "gpu"}}, Repositories: []string{"acme/*"}},
		"web": {PoolLabels: policy.PoolLabels{Own: []string{"web-runner"}}, Repositories: []string{"acme/web"}},
	}
	for name, c := range map[string]struct {
		labels     []string
		repository string
		code       lifecycle.ReasonCode
		text       string
		expected   bool
	}{
		"a letter is missing":               {[]string{"remuda-smal"}, "acme/app", lifecycle.ReasonLabelUnknown, `"remuda-smal"; did you mean remuda-small, of pool ci?`, true},
		"in another case":                   {[]string{"Remuda-Smalll"}, "acme/app", lifecycle.ReasonLabelUnknown, "remuda-small", true},
		"one that no pool has beside one":   {[]string{"gpu", "fpga"}, "acme/app", lifecycle.ReasonLabelUnknown, `pool ci has not all of its labels, it lacks ["fpga"]`, true},
		"a misspelled one beside a default": {[]string{"self-hosted", "web-runer"}, "acme/web", lifecycle.ReasonLabelUnknown, "web-runner", true},
		"of a pool that is for others":      {[]string{"web-runer"}, "acme/app", lifecycle.ReasonOtherRunners, "", false},
		"the pool of others":                {[]string{"web-runner"}, "acme/app", lifecycle.ReasonNotServed, "acme/app may not use job pool web; it may be used by [acme/web]", true},
		"a default label":                   {[]string{"linux", "gpu"}, "acme/app", lifecycle.ReasonDefaultLabels, "names the label linux, which the hosts of pool ci do not have", true},
		"a default label, of others":        {[]string{"linux", "web-runner"}, "acme/app", lifecycle.ReasonDefaultLabels, "", false},
		"its run":                           {[]string{"41"}, "acme/app", lifecycle.ReasonNotProvisioned, "nothing was provisioned", true},
		"another run":                       {[]string{"42"}, "acme/app", lifecycle.ReasonOtherRunners, "", false},
		"GitHub's own":                      {[]string{"ubuntu-latest"}, "acme/app", lifecycle.ReasonOtherRunners, "for other runners", false},
		"default labels alone":              {[]string{"self-hosted", "linux"}, "acme/app", lifecycle.ReasonOtherRunners, "", false},
		"short and different":               {[]string{"cpx"}, "acme/app", lifecycle.ReasonOtherRunners, "", false},
		"another size":                      {[]string{"self-hosted", "Remuda-xlarge"}, "acme/app", lifecycle.ReasonLabelUnknown, `no pool has the label "Remuda-xlarge"; of those that begin alike the nearest is remuda-small, of pool ci`, true},
		"another size, of a pool of others": {[]string{"web-server"}, "acme/app", lifecycle.ReasonOtherRunners, "", false},
		"pools that begin differently":      {[]string{"remuda-xlarge"}, "acme/web", lifecycle.ReasonOtherRunners, "", false},
		"one word":                          {[]string{"remuda"}, "acme/app", lifecycle.ReasonOtherRunners, "", false},
		"no labels":                         {nil, "acme/app", lifecycle.ReasonOtherRunners, "", false},
		"long":                              {[]string{strings.Repeat("remuda-small", 20)}, "acme/app", lifecycle.ReasonOtherRunners, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			why := unserved.Why(lifecycle.WorkflowJob{ID: 7, RunID: "41", Repository: c.repository, Labels: c.labels}, pools)
			if why.Code != c.code || !strings.Contains(why.Text, c.text) || why.Expected != c.expected {
				t.Errorf("got %+v", why)
			}
			named := ""
			if m := namesPool.FindStringSubmatch(why.Text); m != nil {
				named = m[1]
			}
			if why.Pool != named {
				t.Errorf("the pool is %q, and the sentence names %q: %s", why.Pool, named, why.Text)
			}
		})
	}
}

// namesPool finds the pool that a sentence names.
var namesPool = regexp.MustCompile(`\bpool (ci|web)\b`)

// A pool whose label begins as those of GitHub's own runners does is not what their jobs mean.
func TestLabelsOfGitHub(t *testing.T) {
	pools := map[string]unserved.Pool{"u": {PoolLabels: policy.PoolLabels{Own: []string{"ubuntu-24.05"}}, Repositories: []string{"acme/*"}}}
	why := unserved.Why(lifecycle.WorkflowJob{Repository: "acme/app", Labels: []string{"ubuntu-24.04"}}, pools)
	if why.Code != lifecycle.ReasonOtherRunners || why.Expected {
		t.Errorf("got %+v", why)
	}
}

// What all pools begin their labels with is that of the fleet, whatever else they have.
func TestTheNearestOfThoseThatBeginAlike(t *testing.T) {
	pool := func(labels ...string) unserved.Pool {
		return unserved.Pool{PoolLabels: policy.PoolLabels{Own: labels}, Repositories: []string{"acme/*"}}
	}
	pools := map[string]unserved.Pool{"a": pool("ci-small", "gpu-fast"), "b": pool("arm", "ci-medium"), "c": pool("ci-2xlarge")}
	for label, want := range map[string]string{"ci-4xlarge-spot": "ci-2xlarge, of pool c", "ci-smart": "ci-small, of pool a", "gpu-of-others": "", "arm-of-others": ""} {
		why := unserved.Why(lifecycle.WorkflowJob{Repository: "acme/app", Labels: []string{label}}, pools)
		if why.Expected != (want != "") || !strings.Contains(why.Text, want) {
			t.Errorf("%s: got %+v, want %q", label, why, want)
		}
	}
}

// Two labels of one pool that begin alike are no beginning of the other's.
func TestBeginningsOfOnePool(t *testing.T) {
	pool := func(labels ...string) unserved.Pool {
		return unserved.Pool{PoolLabels: policy.PoolLabels{Own: labels}, Repositories: []string{"acme/*"}}
	}
	pools := map[string]unserved.Pool{"a": pool("ci-small", "gpu-fast", "ci-large"), "b": pool("gpu-slow")}
	for label, want := range map[string]bool{"ci-extraordinary": false, "gpu-extraordinary": true} {
		if why := unserved.Why(lifecycle.WorkflowJob{Repository: "acme/app", Labels: []string{label}}, pools); why.Expected != want {
			t.Errorf("%s: got %+v", label, why)
		}
	}
}

// Every fourth letter may differ, and not more: a label of eight may have two wrong ones.
func TestHowManyLettersMayDiffer(t *testing.T) {
	pools := map[string]unserved.Pool{"a": {PoolLabels: policy.PoolLabels{Own: []string{"builders"}}, Repositories: []string{"acme/*"}}}
	for label, want := range map[string]bool{"builders": false, "builderz": true, "builderzz": true, "builderzzz": false} {
		why := unserved.Why(lifecycle.WorkflowJob{Repository: "acme/app", Labels: []string{label}}, pools)
		if got := strings.Contains(why.Text, "did you mean builders"); got != want {
			t.Errorf("%s: %t, want %t: %+v", label, got, want, why)
		}
	}
}
