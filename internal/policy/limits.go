package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Limits bound how many hosts may serve the runs of one repository and of one
// owner at once; 0: any number.
type Limits struct {
	HostsPerRepository, HostsPerOwner int
}

// On reports whether there is a limit at all.
func (l Limits) On() bool { return l.HostsPerRepository > 0 || l.HostsPerOwner > 0 }

// Limit is one number and whom it is about.
type Limit struct {
	Kind lifecycle.QuotaKind
	// Of is the repository, owner or pool.
	Of string
	// Hosts is how many there may be; Key is where that is configured.
	Hosts int
	Key   string
}

// LedgerName names the account of the limit. GitHub's names do not tell upper from
// lower case, and whoever writes them otherwise has no hosts for it.
func (l Limit) LedgerName() string { return lifecycle.QuotaName(l.Kind, strings.ToLower(l.Of)) }

// Of are the limits on the hosts of a repository's runs, in the order in which
// room is taken.
func (l Limits) Of(repository string) []Limit {
	var all []Limit
	if l.HostsPerRepository > 0 {
		all = append(all, Limit{lifecycle.QuotaRepository, repository, l.HostsPerRepository, "limits.hosts_per_repository"})
	}
	if l.HostsPerOwner > 0 {
		all = append(all, Limit{lifecycle.QuotaOwner, lifecycle.Owner(repository), l.HostsPerOwner, "limits.hosts_per_owner"})
	}
	return all
}

// PoolLimit is the limit on the hosts of a pool.
func PoolLimit(pool string, maximum int) Limit {
	return Limit{lifecycle.QuotaPool, pool, maximum, "pools." + pool + ".maximum"}
}

// String tells the limit in a sentence.
func (l Limit) String() string {
	hosts := "hosts"
	if l.Hosts == 1 {
		hosts = "host"
	}
	return fmt.Sprintf("%s allows %s %d %s at once", l.Key, l.Of, l.Hosts, hosts)
}

// BelowMinimum finds a limit below the minimum of a request, which waits for room in vain.
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
	Ledger lifecycle.QuotaLedger
}

// Remaining is how many more hosts there may be. It is not negative: a limit that was
// made smaller takes no host away.
func (r Quota) Remaining() int { return max(r.Limit.Hosts-r.Ledger.Used(), 0) }

// Granted is how many hosts a request may have by all of its limits: as many as it
// asks for, or as there is room for, but none if that is less than its minimum. What
// it has taken already it may have: taken hosts are not given back for a limit. short
// is the place of the limit with the least room; -1: all is granted.
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
	return max(hosts, taken), short
}

// runsTold bounds how many runs a sentence about a limit names.
const runsTold = 5

// Reason is the sentence about a limit that has no room for a request which needs at
// least so many more hosts. It names runs of the request's own repository; of others
// it tells how many hosts they have.
func (r Quota) Reason(q lifecycle.Request, needs int) string {
	s := r.Limit.String() + ", and "
	switch left := r.Remaining(); {
	case left == 0:
		s += "none is left: "
	case needs > left:
		s += fmt.Sprintf("%s where %d are needed: ", areLeft(left), needs)
	default:
		s += areLeft(left) + ": "
	}
	return s + r.holders(q.Repository)
}

func areLeft(n int) string {
	if n == 1 {
		return "1 is left"
	}
	return fmt.Sprintf("%d are left", n)
}

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
	one, many, other := "run %s has %d", "%d more runs of %s have %d", "others have %d"
	if r.Limit.Kind == lifecycle.QuotaPool { // of which a host may serve others by now, or nobody
		one, many, other = "for run %s %d were launched", "for %d more runs of %s %d", "for others %d"
	}
	var parts []string
	rest := 0
	for i, h := range runs {
		if i < runsTold {
			parts = append(parts, fmt.Sprintf(one, h.run, h.hosts))
		} else {
			rest += h.hosts
		}
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf(many, len(runs)-runsTold, repository, rest))
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf(other, others))
	}
	if len(parts) == 0 {
		return "nobody has any"
	}
	return strings.Join(parts, ", ")
}
