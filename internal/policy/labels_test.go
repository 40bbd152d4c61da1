package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/policy"
)

func TestMatchPool(t *testing.T) {
	pools := withDefaults(map[string][]string{
		"small": {"remuda-small"},
		"gpu":   {"remuda-small", "gpu"},
		"beta":  {"beta", "remuda-b"},
		"alpha": {"beta", "remuda-a"},
		"named": {"self-hosted", "Linux", "Named"},
		"arm":   {"build", "arm64"},
		"intel": {"build", "X64"},
		"wide":  {"self-hosted", "linux", "wide"},
		"wider": {"wide", "wider"},
		"any":   {"anywhere"},
		"any64": {"anywhere", "arm64"},
	})
	tests := []struct {
		name   string
		labels []string
		want   string
	}{
		{"its one label", []string{"remuda-small"}, "small"},
		{"in another case", []string{"Remuda-SMALL"}, "small"},
		{"with what every runner has", []string{"self-hosted", "Linux", "X64", "remuda-small"}, "small"},
		{"named twice", []string{"remuda-small", "remuda-small"}, "small"},
		{"more labels, more specific", []string{"remuda-small", "gpu"}, "gpu"},
		{"one of many labels", []string{"gpu"}, "gpu"},
		{"a tie goes by name", []string{"beta"}, "alpha"},
		{"a label that no pool has", []string{"remuda-small", "fpga"}, ""},
		{"labels of two pools", []string{"remuda-small", "beta"}, ""},
		{"another system", []string{"windows", "remuda-small"}, ""},
		{"part of a label", []string{"remuda"}, ""},
		{"only what every runner has", []string{"self-hosted", "linux", "x64"}, ""},
		{"no labels", nil, ""},
		{"a pool that names what every runner has", []string{"named"}, "named"},
		{"only what the pool and every runner have", []string{"self-hosted", "linux"}, ""},
		{"what every runner has makes no pool narrower", []string{"wide"}, "wide"},
		{"the pool of an architecture", []string{"build", "ARM64"}, "arm"},
		{"the pool of the other", []string{"build", "x64"}, "intel"},
		{"no architecture named", []string{"build"}, "arm"},
		{"two architectures", []string{"build", "x64", "arm64"}, ""},
		{"a pool of any, before a narrower one", []string{"anywhere"}, "any"},
		{"a pool that says it, before one of any", []string{"anywhere", "arm64"}, "any64"},
		{"only a pool of any", []string{"anywhere", "x64"}, "any"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := policy.MatchPool(pools, tt.labels)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("%v: got %q, %t, want %q", tt.labels, got, ok, tt.want)
			}
		})
	}
	if got, ok := policy.MatchPool(nil, []string{"remuda-small"}); ok || got != "" {
		t.Errorf("without pools: got %q", got)
	}
	if got, ok := policy.MatchPool(withDefaults(map[string][]string{"x": {}}), []string{"remuda-small"}); ok || got != "" {
		t.Errorf("a pool without labels: got %q", got)
	}
}

// withDefaults are pools whose runners have GitHub's default labels too.
func withDefaults(own map[string][]string) map[string]policy.PoolLabels {
	pools := map[string]policy.PoolLabels{}
	for name, labels := range own {
		pools[name] = policy.PoolLabels{Own: labels, Default: true}
	}
	return pools
}

// GitHub gives a job to a runner that has all of its labels, so a pool without default labels has no host for a
// job that names one.
func TestMatchPoolWithoutDefaultLabels(t *testing.T) {
	pools := map[string]policy.PoolLabels{
		"small":    {Own: []string{"remuda-small"}},
		"gpu":      {Own: []string{"remuda-small", "gpu"}},
		"named":    {Own: []string{"self-hosted", "x64", "named"}},
		"defaults": {Own: []string{"old"}, Default: true},
	}
	for name, tt := range map[string]struct {
		labels []string
		want   string
	}{
		"its one label":             {[]string{"Remuda-Small"}, "small"},
		"two of its labels":         {[]string{"gpu", "remuda-small"}, "gpu"},
		"a default label beside it": {[]string{"self-hosted", "remuda-small"}, ""},
		"its machine beside it":     {[]string{"remuda-small", "x64"}, ""},
		"default labels alone":      {[]string{"self-hosted", "linux", "x64"}, ""},
		"one that the pool names":   {[]string{"self-hosted", "named"}, "named"},
		"those that it names alone": {[]string{"self-hosted", "x64"}, ""},
		"a pool that asks for them": {[]string{"self-hosted", "linux", "old"}, "defaults"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := policy.MatchPool(pools, tt.labels); got != tt.want || ok != (tt.want != "") {
				t.Errorf("%v: got %q, %t, want %q", tt.labels, got, ok, tt.want)
			}
		})
	}
}

func TestWithDefaultLabels(t *testing.T) {
	for _, tt := range []struct {
		labels []string
		arch   string
		want   []string
	}{
		{nil, "x86_64", []string{"self-hosted", "linux", "x64"}},
		{[]string{"a"}, "arm64", []string{"a", "self-hosted", "linux", "arm64"}},
		{[]string{"Linux", "a", "X64"}, "", []string{"Linux", "a", "X64", "self-hosted"}},
	} {
		if d := cmp.Diff(tt.want, policy.WithDefaultLabels(tt.labels, tt.arch)); d != "" {
			t.Errorf("%v on %s: %s", tt.labels, tt.arch, d)
		}
	}
}

func TestServesRepository(t *testing.T) {
	tests := []struct {
		name       string
		patterns   []string
		repository string
		want       bool
	}{
		{"by name", []string{"acme/web"}, "acme/web", true},
		{"in another case", []string{"Acme/web"}, "acme/Web", true},
		{"the second", []string{"acme/web", "acme/api"}, "acme/api", true},
		{"all of an owner", []string{"acme/*"}, "acme/api", true},
		{"some of an owner", []string{"acme/api-*"}, "acme/api-v2", true},
		{"another one", []string{"acme/web"}, "acme/web2", false},
		{"another owner", []string{"acme/*"}, "acme2/web", false},
		{"a star stops at a slash", []string{"acme/*"}, "acme/web/x", false},
		{"no pattern", nil, "acme/web", false},
		{"no repository", []string{"*/*", "**"}, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := policy.ServesRepository(tt.patterns, tt.repository); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestRunLabels(t *testing.T) {
	const run = "7000000001"
	tests := []struct {
		name   string
		labels []string
		rest   []string
		class  string
		ok     bool
	}{
		{"the run alone", []string{run}, nil, "", true},
		{"the run and a class", []string{"self-hosted", run, "remuda-large"}, []string{"self-hosted", "remuda-large"}, "large", true},
		{"a class in another case", []string{run, "Remuda-Memory-Large"}, []string{"Remuda-Memory-Large"}, "memory-large", true},
		{"other labels stay as they are", []string{"GPU", run, "linux", "X64", "arm64", "Remuda"}, []string{"GPU", "linux", "X64", "arm64", "Remuda"}, "", true},
		{"each once", []string{run, "gpu", "GPU", run}, []string{"gpu"}, "", true},
		{"labels behind one that was named", []string{run, "gpu", "GPU", "arm64"}, []string{"gpu", "arm64"}, "", true},
		{"the same class twice", []string{run, "remuda-large", "remuda-Large"}, []string{"remuda-large"}, "large", true},
		{"two classes", []string{run, "remuda-large", "remuda-xlarge"}, []string{"remuda-large", "remuda-xlarge"}, "", true},
		{"no name of a class", []string{run, "remuda-"}, []string{"remuda-"}, "", true},
		{"two words", []string{run, "remuda-a b"}, []string{"remuda-a b"}, "", true},
		{"another run", []string{"7000000002", "remuda-large"}, nil, "", false},
		{"part of the run", []string{"700000000"}, nil, "", false},
		{"no run", []string{"remuda-large"}, nil, "", false},
		{"nothing", nil, nil, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rest, class, ok := policy.RunLabels(tt.labels, run)
			if d := cmp.Diff(tt.rest, rest); d != "" || class != tt.class || ok != tt.ok {
				t.Errorf("got %v, %q, %t; %s", rest, class, ok, d)
			}
		})
	}
	if _, _, ok := policy.RunLabels([]string{""}, ""); ok {
		t.Error("an empty label is the id of a run that has none")
	}
}
