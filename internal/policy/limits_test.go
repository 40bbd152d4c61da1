package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/policy"
)

func entry(repository, run string, hosts int) ledger.Reservation {
	return ledger.Reservation{Repository: repository, RunID: run, RequestID: "a", Hosts: hosts}
}

func TestGranted(t *testing.T) {
	q := lifecycle.Request{Repository: "acme/app", RunID: "1", RequestID: "a", Spec: lifecycle.Spec{Count: 4, MinimumCount: 2}}
	mine := func(n int) ledger.Reservation { return entry("acme/app", "1", n) }
	others := func(n int) ledger.Reservation { return entry("acme/lib", "2", n) }
	for name, test := range map[string]struct {
		taken             int
		repository, owner []ledger.Reservation
		hosts, short      int
		reservedIn        []string
	}{
		"no host is reserved":             {taken: 0, hosts: 4, short: -1},
		"room for all":                    {owner: []ledger.Reservation{others(2)}, hosts: 4, short: -1},
		"room for some":                   {owner: []ledger.Reservation{others(4)}, hosts: 2, short: 1},
		"room for fewer than the minimum": {owner: []ledger.Reservation{others(5)}, hosts: 0, short: 1},
		"its own counts once":             {repository: []ledger.Reservation{mine(4)}, owner: []ledger.Reservation{others(2), mine(4)}, hosts: 4, short: -1},
		"half of it was booked":           {repository: []ledger.Reservation{mine(4)}, owner: []ledger.Reservation{others(6)}, hosts: 0, short: 1},
		"a limit that was made smaller":   {taken: 3, repository: []ledger.Reservation{mine(3)}, owner: []ledger.Reservation{others(9), mine(3)}, hosts: 3, short: 1},
		"two callers won more":            {taken: 2, repository: []ledger.Reservation{mine(1)}, owner: []ledger.Reservation{others(5), mine(1)}, hosts: 1, short: 1},
		"the least of both":               {repository: []ledger.Reservation{entry("acme/app", "2", 2)}, owner: []ledger.Reservation{others(1)}, hosts: 3, short: 0},
		"what is taken stays":             {taken: 1, owner: []ledger.Reservation{others(6)}, hosts: 1, short: 1},
		"a limit that is new":             {taken: 3, repository: []ledger.Reservation{mine(3)}, owner: []ledger.Reservation{others(6)}, hosts: 3, short: 1, reservedIn: []string{"repository"}},
		"one that was lowered to nothing": {taken: 3, repository: []ledger.Reservation{mine(3)}, owner: []ledger.Reservation{others(6)}, hosts: 0, short: 1, reservedIn: []string{"repository", "owner"}},
		"the same, with some room":        {taken: 3, repository: []ledger.Reservation{mine(3)}, owner: []ledger.Reservation{others(4)}, hosts: 2, short: 1, reservedIn: []string{"repository", "owner"}},
	} {
		t.Run(name, func(t *testing.T) {
			q := q
			q.ReservedIn = test.reservedIn
			var rooms []policy.Quota
			for i, l := range (policy.Limits{HostsPerRepository: 5, HostsPerOwner: 6}).Of("acme/app") {
				rooms = append(rooms, policy.Quota{Limit: l, Ledger: ledger.Quota{Reservations: [][]ledger.Reservation{test.repository, test.owner}[i]}})
			}
			if hosts, short := policy.Granted(q, test.taken, rooms); hosts != test.hosts || short != test.short {
				t.Errorf("granted %d, short of %d; want %d, %d", hosts, short, test.hosts, test.short)
			}
		})
	}
}

// A sentence names the runs of the caller's repository, the largest first and not all
// of them, and nothing of others but their number.
func TestFullNamesNobodyElse(t *testing.T) {
	var entries []ledger.Reservation
	for i := range 7 {
		entries = append(entries, entry("acme/app", fmt.Sprint(i), 1+i%3))
	}
	entries = append(entries, entry("Acme/App", "2", 1), entry("acme/secret", "99", 4))
	r := policy.Quota{Limit: policy.Limits{HostsPerOwner: 20}.Of("acme/app")[0], Ledger: ledger.Quota{Reservations: entries}}
	got := r.Reason(lifecycle.Request{Repository: "acme/app"}, 3)
	if got, want := policy.PoolLimit("tiny", 1).String(), "pools.tiny.maximum allows tiny 1 host at once"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	want := "limits.hosts_per_owner allows acme 20 hosts at once, and 2 are left where 3 are needed: " +
		"run 2 has 4, run 5 has 3, run 1 has 2, run 4 has 2, run 0 has 1, 2 more runs of acme/app have 2, others have 4"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLimitsThatAreOn(t *testing.T) {
	for _, tt := range []struct {
		limits policy.Limits
		on     bool
		of     []string // the keys of the limits on a run
	}{
		{policy.Limits{}, false, nil},
		{policy.Limits{HostsPerRepository: 1}, true, []string{"limits.hosts_per_repository"}},
		{policy.Limits{HostsPerOwner: 1}, true, []string{"limits.hosts_per_owner"}},
		{policy.Limits{HostsPerRepository: 1, HostsPerOwner: 1}, true, []string{"limits.hosts_per_repository", "limits.hosts_per_owner"}},
	} {
		var of []string
		for _, l := range tt.limits.Of("acme/app") {
			of = append(of, l.Key)
		}
		if on := tt.limits.On(); on != tt.on || !slices.Equal(of, tt.of) {
			t.Errorf("%+v: on %t with %v, want %t with %v", tt.limits, on, of, tt.on, tt.of)
		}
	}
}

func TestALimitBelowTheMinimum(t *testing.T) {
	limits := policy.Limits{HostsPerRepository: 3, HostsPerOwner: 2}.Of("acme/app")
	for minimum, want := range map[int]string{2: "", 3: "limits.hosts_per_owner", 4: "limits.hosts_per_repository"} {
		got, found := policy.BelowMinimum(lifecycle.Request{Spec: lifecycle.Spec{MinimumCount: minimum}}, limits)
		if got.Key != want || found != (want != "") {
			t.Errorf("a minimum of %d: %q (%t), want %q", minimum, got.Key, found, want)
		}
	}
}

// The sentence says how many are left, and names no runs or others where there are none.
func TestReasonsOfLimits(t *testing.T) {
	owner, pool := policy.Limits{HostsPerOwner: 3}.Of("acme/app")[0], policy.PoolLimit("tiny", 3)
	for name, tt := range map[string]struct {
		limit policy.Limit
		has   []ledger.Reservation
		needs int
		want  string
	}{
		"none is left":     {owner, []ledger.Reservation{entry("acme/app", "7", 3)}, 1, "acme 3 hosts at once, and none is left: run 7 has 3"},
		"as many are left": {owner, []ledger.Reservation{entry("acme/lib", "7", 1)}, 2, "acme 3 hosts at once, and 2 are left: others have 1"},
		"fewer are left":   {owner, []ledger.Reservation{entry("acme/lib", "7", 2)}, 2, "acme 3 hosts at once, and 1 is left where 2 are needed: others have 2"},
		"others before it": {owner, []ledger.Reservation{entry("acme/lib", "7", 1), entry("acme/app", "8", 1), entry("acme/app", "9", 1)}, 1,
			"and none is left: run 8 has 1, run 9 has 1, others have 1"},
		"one run twice":       {owner, []ledger.Reservation{entry("acme/app", "8", 1), entry("acme/app", "8", 2)}, 1, "and none is left: run 8 has 3"},
		"nothing is reserved": {owner, nil, 4, "and 3 are left where 4 are needed: no host is reserved"},
		"of a pool": {pool, []ledger.Reservation{entry("acme/app", "7", 2), entry("acme/lib", "8", 1)}, 1,
			"tiny 3 hosts at once, and none is left: for run 7 2 were launched, for others 1"},
	} {
		got := policy.Quota{Limit: tt.limit, Ledger: ledger.Quota{Reservations: tt.has}}.Reason(lifecycle.Request{Repository: "acme/app"}, tt.needs)
		if !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s: %q, want the end %q", name, got, tt.want)
		}
	}
}
