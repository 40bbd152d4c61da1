package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/policy"
)

func TestLimitsAreRead(t *testing.T) {
	for text, want := range map[string]policy.Limits{
		"":                                {},
		"limits: {hosts_per_owner: 40}\n": {HostsPerOwner: 40},
		"limits: {hosts_per_repository: 10, hosts_per_owner: 10}\n": {HostsPerRepository: 10, HostsPerOwner: 10},
	} {
		if d := cmp.Diff(want, parse(t, text).Limits.Policy()); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

func TestLimitRules(t *testing.T) {
	for name, test := range map[string]struct{ yaml, want string }{
		"negative": {`{hosts_per_owner: -1}`, `limits.hosts_per_owner: is -1; write a number from 0 to 1000`},
		"too many": {`{hosts_per_repository: 1001}`, `limits.hosts_per_repository: is 1001; write a number from 0 to 1000`},
		"vain":     {`{hosts_per_repository: 5, hosts_per_owner: 4}`, `limits.hosts_per_repository: is 5, more than hosts_per_owner (4)`},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, token+"limits: "+test.yaml+"\n", test.want) })
	}
}
