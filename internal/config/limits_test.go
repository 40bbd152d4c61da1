package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/budget"
)

func TestLimitsAreRead(t *testing.T) {
	for text, want := range map[string]policy.Limits{
		"":                                {},
		"limits: {hosts_per_owner: 40}\n": {HostsPerOwner: 40},
		"limits: {hosts_per_repository: 0, hosts_per_owner: 0}\n":   {},
		"limits: {hosts_per_repository: 10, hosts_per_owner: 10}\n": {HostsPerRepository: 10, HostsPerOwner: 10},
	} {
		if d := cmp.Diff(want, parse(t, text).Limits.Policy()); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

func TestBudgetsAreRead(t *testing.T) {
	got := parse(t, "limits: {budgets: [{repository: Acme/Shop, dollars_per_month: 99.5}, {owner: Acme, dollars_per_month: 1e3, warn_percent: 0}]}").Limits.BudgetList()
	want := budget.List{{Repository: "acme/shop", Dollars: 99.5, WarnPercent: 80}, {Owner: "acme", Dollars: 1000}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestLimitRules(t *testing.T) {
	for name, test := range map[string]struct{ yaml, want string }{
		"negative":           {`{hosts_per_owner: -1}`, `limits.hosts_per_owner: is -1; write a number from 0 to 1000`},
		"too many":           {`{hosts_per_repository: 1001}`, `limits.hosts_per_repository: is 1001; write a number from 0 to 1000`},
		"a budget unnamed":   {`{budgets: [{dollars_per_month: 1}]}`, `limits.budgets[0]: write either repository or owner`},
		"a budget of both":   {`{budgets: [{repository: acme/shop, owner: acme, dollars_per_month: 1}]}`, `limits.budgets[0]: write either repository or owner`},
		"no repository":      {`{budgets: [{repository: acme, dollars_per_month: 1}]}`, `limits.budgets[0].repository: is "acme"; write a repository as owner/name`},
		"no owner":           {`{budgets: [{owner: acme/shop, dollars_per_month: 1}]}`, `limits.budgets[0].owner: is "acme/shop"; write the owner of repositories`},
		"a budget twice":     {`{budgets: [{owner: acme, dollars_per_month: 1}, {owner: Acme, dollars_per_month: 2}]}`, `limits.budgets[1]: is a second budget of owner acme; write one`},
		"not a number":       {`{budgets: [{owner: acme, dollars_per_month: .nan}]}`, `limits.budgets[0].dollars_per_month: ".nan" is not a number; write one`},
		"no dollars":         {`{budgets: [{owner: acme}]}`, `limits.budgets[0].dollars_per_month: is 0; write a number above 0, to 100000000`},
		"too many dollars":   {`{budgets: [{owner: acme, dollars_per_month: 100000001}]}`, `is 1.00000001e+08; write a number above 0, to 100000000`},
		"a warning too late": {`{budgets: [{owner: acme, dollars_per_month: 1, warn_percent: 101}]}`, `limits.budgets[0].warn_percent: is 101; write a number from 0 to 100`},
		"too many budgets":   {`{budgets: [` + strings.Repeat(`{owner: acme, dollars_per_month: 1}, `, 501) + `]}`, `limits.budgets: has 501 rows; write at most 500`},
		"vain":               {`{hosts_per_repository: 5, hosts_per_owner: 4}`, `limits.hosts_per_repository: is 5, more than hosts_per_owner (4)`},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, token+"limits: "+test.yaml+"\n", test.want) })
	}
}
