package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// Limits bound how many hosts may serve the runs of one repository and of one owner at once; 0: any number.
type Limits struct {
	HostsPerRepository, HostsPerOwner int
}

// On reports whether there is a limit at all.
func (l Limits) On() bool { return l.HostsPerRepository > 0 || l.HostsPerOwner > 0 }

// Limit is how many hosts one repository, owner or pool may have.
type Limit struct {
	Kind ledger.Kind
	// Of is the repository, owner or pool.
	Of string
	// Hosts is how many there may be; Key is where that is configured.
	Hosts int
	Key   string
}

// LedgerName names the ledger of the limit. GitHub names are case-insensitive, so the
// key is lower-cased; otherwise Acme and acme would have separate quotas.
func (l Limit) LedgerName() string { return ledger.Name(l.Kind, strings.ToLower(l.Of)) }

// Of are the limits on the hosts of a repository's runs, in the order in which they are reserved.
func (l Limits) Of(repository string) []Limit {
	var all []Limit
	if l.HostsPerRepository > 0 {
		all = append(all, Limit{ledger.OfRepository, repository, l.HostsPerRepository, "limits.hosts_per_repository"})
	}
	if l.HostsPerOwner > 0 {
		all = append(all, Limit{ledger.OfOwner, lifecycle.Owner(repository), l.HostsPerOwner, "limits.hosts_per_owner"})
	}
	return all
}

// PoolLimit is the limit on the hosts of a pool.
func PoolLimit(pool string, maximum int) Limit {
	return Limit{ledger.OfPool, pool, maximum, "pools." + pool + ".maximum"}
}

// String describes the limit in a sentence.
func (l Limit) String() string {
	return fmt.Sprintf("%s allows %s %s at once", l.Key, l.Of, plural.Of(l.Hosts, "host", "hosts"))
}

// BelowMinimum finds a limit below the minimum of a request. Such a request could wait forever.
func BelowMinimum(q lifecycle.Request, limits []Limit) (Limit, bool) {
	i := slices.IndexFunc(limits, func(l Limit) bool { return l.Hosts < q.Spec.MinimumCount })
	if i < 0 {
		return Limit{}, false
	}
	return limits[i], true
}

// Quota is a limit and what counts against it.
type Quota struct {
	Limit  Limit
	Ledger ledger.Quota
}

// Remaining is how many more hosts there may be. It is never negative: lowering a limit ends no host.
func (r Quota) Remaining() int { return max(r.Limit.Hosts-r.Ledger.Used(), 0) }

// Granted is how many hosts a request may have under all of its limits: as many as it asks for or as remain,
// but none if that is less than its minimum. Of the hosts that it has taken it keeps what Kept says. short is
// the index of the limit with the least left; -1 if everything is granted.
func Granted(q lifecycle.Request, taken int, rooms []Quota) (hosts, short int) {
	hosts, short = q.Spec.Count, -1
	for i, r := range rooms {
		if room := r.Ledger.ReservationOf(q, 0).Hosts + r.Remaining(); room < hosts {
			hosts, short = room, i
		}
	}
	if hosts < q.Spec.MinimumCount {
		hosts = 0
	}
	return max(hosts, Kept(q, taken, rooms)), short
}

// Kept is how many of the hosts that a request has taken it keeps under its limits: all that it has reserved.
// Two callers of one request may have claimed more, each within the same reservation. A limit in which nothing
// is reserved, and never was, is newer than the hosts, and ends none.
func Kept(q lifecycle.Request, taken int, rooms []Quota) int {
	for _, r := range rooms {
		if reserved := r.Ledger.ReservationOf(q, 0).Hosts; reserved > 0 || slices.Contains(q.ReservedIn, string(r.Limit.Kind)) {
			taken = min(taken, reserved)
		}
	}
	return taken
}

// KindsOf are the kinds of limits, in their order.
func KindsOf(limits []Limit) (kinds []string) {
	for _, l := range limits {
		kinds = append(kinds, string(l.Kind))
	}
	return kinds
}

// runsNamed bounds how many runs a sentence about a limit names.
const runsNamed = 5

// Reason is the sentence about a limit that does not leave a request the hosts that it needs. It names runs
// of the request's own repository; of other repositories it only gives the number of hosts.
func (r Quota) Reason(q lifecycle.Request, needs int) string {
	s := r.Limit.String() + ", and "
	switch left := r.Remaining(); {
	case left == 0:
		s += "none is left: "
	case needs > left:
		s += fmt.Sprintf("%s where %s needed: ", areLeft(left), plural.Of(needs, "is", "are"))
	default:
		s += areLeft(left) + ": "
	}
	return s + r.holders(q.Repository)
}

func areLeft(n int) string { return plural.Of(n, "is left", "are left") }

// holders says who has the hosts, the runs with the most first.
func (r Quota) holders(repository string) string {
	type holder struct {
		run   string
		hosts int
	}
	var runs []holder
	others := 0
	for _, e := range r.Ledger.Reservations {
		if !strings.EqualFold(e.Repository, repository) {
			others += e.Hosts
			continue
		}
		i := slices.IndexFunc(runs, func(h holder) bool { return h.run == e.RunID })
		if i < 0 {
			i, runs = len(runs), append(runs, holder{run: e.RunID})
		}
		runs[i].hosts += e.Hosts
	}
	slices.SortStableFunc(runs, func(a, b holder) int { return b.hosts - a.hosts })
	unnamed := len(runs) - runsNamed
	more := plural.Of(unnamed, "more run", "more runs")
	one, many, other := "run %s has %d", more+" of %s "+plural.Word(unnamed, "has", "have")+" %d", "others have %d"
	if r.Limit.Kind == ledger.OfPool { // its hosts may serve other runs by now, or none
		one, many, other = "for run %s %d were launched", "for "+more+" of %s %d", "for others %d"
	}
	var parts []string
	rest := 0
	for i, h := range runs {
		if i < runsNamed {
			parts = append(parts, fmt.Sprintf(one, h.run, h.hosts))
		} else {
			rest += h.hosts
		}
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf(many, repository, rest))
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf(other, others))
	}
	if len(parts) == 0 {
		return "no host is reserved"
	}
	return strings.Join(parts, ", ")
}
