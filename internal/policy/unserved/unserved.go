// Package unserved says why no pool serves a queued job.
package unserved

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/nearest"
	"github.com/remuda-ci/remuda/internal/policy"
)

// Pool is what a job pool serves.
type Pool struct {
	policy.PoolLabels
	// Repositories are the patterns of those that may use it.
	Repositories []string
}

// Refusal is why no job pool serves a job.
type Refusal struct {
	lifecycle.Reason
	// Pool is the one that the job names, or means; empty: none.
	Pool string
	// Expected: the author of the job expects a host of this fleet.
	Expected bool
}

// Why returns why none of the job pools serves a job. Its author expects a host of this fleet if the job names a label of a
// pool, or one that is nearly that, or the id of its run. A job that does not is for other runners, as most jobs of an organization may be.
func Why(j lifecycle.WorkflowJob, pools map[string]Pool) Refusal {
	labels := map[string]policy.PoolLabels{}
	for name, p := range pools {
		labels[name] = p.PoolLabels
	}
	if pool, ok := policy.MatchPool(labels, j.Labels); ok {
		return Refusal{lifecycle.Because(lifecycle.ReasonNotServed, "job %d gets no host: %s may not use job pool %s; it may be used by %v",
			j.ID, j.Repository, pool, pools[pool].Repositories), pool, true}
	}
	if _, _, ok := policy.RunLabels(j.Labels, j.RunID); ok {
		return Refusal{lifecycle.Because(lifecycle.ReasonNotProvisioned, "job %d gets no host: runs-on names the id of its run, and nothing was provisioned for the run: "+
			"call Provision in a job before it, or add a rule with webhook: true for %s", j.ID, j.Repository), "", true}
	}
	own := slices.DeleteFunc(slices.Clone(j.Labels), policy.IsDefaultLabel)
	if pool, ok := policy.MatchPool(labels, own); ok && len(own) < len(j.Labels) {
		return Refusal{LacksDefaults(j.ID, j.Labels, pool), pool, policy.ServesRepository(pools[pool].Repositories, j.Repository)}
	}
	if pool, why := mislabeled(j, own, pools); why != "" {
		return Refusal{lifecycle.Because(lifecycle.ReasonLabelUnknown, "job %d gets no host: %s", j.ID, why), pool, true}
	}
	return Refusal{Reason: lifecycle.Because(lifecycle.ReasonOtherRunners, "job %d is for other runners", j.ID)}
}

// Next is what happens next to a job that gets no host for a reason, and what to do about that. The pool is the one that the job names, or
// means; empty: none.
func Next(code lifecycle.ReasonCode, pool string) string {
	section := "pools." + cmp.Or(pool, "<name>")
	switch code {
	case lifecycle.ReasonLabelUnknown:
		return changes + ": correct runs-on, or add the label to " + section + ".jobs.labels."
	case lifecycle.ReasonNotServed:
		return "Nothing happens until the configuration changes: add the repository to " + section + ".jobs.repositories."
	case lifecycle.ReasonFork:
		return "Nothing happens until the configuration changes: set " + section + ".jobs.forks, if jobs of forks are to have hosts."
	case lifecycle.ReasonNotProvisioned:
		return "It gets a host once hosts are requested for its run."
	case lifecycle.ReasonRunUnknown:
		return "It is not looked at again: see that the App may read actions, and start the run again."
	}
	return changes + "."
}

const changes = "Nothing happens until the workflow or the configuration changes"

// LacksDefaults says why a job that names default labels gets no host of a pool without them.
func LacksDefaults(id int64, labels []string, pool string) lifecycle.Reason {
	label := labels[slices.IndexFunc(labels, policy.IsDefaultLabel)]
	return lifecycle.Because(lifecycle.ReasonDefaultLabels,
		"job %d gets no host: runs-on names the label %s, which the hosts of pool %s do not have: remove it from runs-on, or set default_labels: true for the pool", id, label, pool)
}

// mislabeled says which of the labels no pool has beside the others, with the pool and the label that it may have meant; empty: none is like those of a
// pool. Only the pools count that the repository may use.
func mislabeled(j lifecycle.WorkflowJob, own []string, pools map[string]Pool) (pool, why string) {
	usable := map[string]Pool{}
	for name, p := range pools {
		if policy.ServesRepository(p.Repositories, j.Repository) {
			usable[name] = p
		}
	}
	for _, name := range slices.Sorted(maps.Keys(usable)) {
		if why := nearly(own, name, usable[name]); why != "" {
			return name, why
		}
	}
	return begunAlike(own, usable)
}

// nearly says which of the labels are misspelled for a pool, or which a pool lacks that has others of them; empty: it has none.
func nearly(own []string, name string, p Pool) string {
	var lacks []string
	meant := ""
	for _, label := range own {
		if slices.ContainsFunc(p.Own, func(l string) bool { return strings.EqualFold(l, label) }) {
			continue
		}
		lacks = append(lacks, label)
		if near := near(label, p.Own, isTypo); near != "" {
			meant = fmt.Sprintf("no pool has the label %q; did you mean %s, of pool %s?", label, near, name)
		}
	}
	switch {
	case meant != "":
		return meant
	case len(lacks) < len(own):
		return fmt.Sprintf("pool %s has not all of its labels, it lacks %q", name, lacks)
	}
	return ""
}

// begunAlike says which of the labels begins as the labels of all pools do, and which of those is nearest to it, with its pool; empty: none.
func begunAlike(own []string, pools map[string]Pool) (pool, why string) {
	beginnings := shared(pools)
	poolOf := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		for _, l := range pools[name].Own {
			if _, ok := poolOf[l]; !ok && slices.Contains(beginnings, beginning(l)) {
				poolOf[l] = name
			}
		}
	}
	known := slices.Sorted(maps.Keys(poolOf))
	for _, label := range own {
		of := slices.DeleteFunc(slices.Clone(known), func(l string) bool { return beginning(l) != beginning(label) })
		if near := near(label, of, anyDistance); near != "" {
			return poolOf[near], fmt.Sprintf("no pool has the label %q; of those that begin alike the nearest is %s, of pool %s", label, near, poolOf[near])
		}
	}
	return "", ""
}

// shared are the beginnings that each pool has a label with, so that they are those of the fleet and of no other runners.
func shared(pools map[string]Pool) []string {
	in := map[string]int{}
	for _, p := range pools {
		var of []string
		for _, l := range p.Own {
			of = append(of, beginning(l))
		}
		slices.Sort(of)
		for _, b := range slices.Compact(of) {
			in[b]++
		}
	}
	maps.DeleteFunc(in, func(b string, n int) bool { return b == "" || n < len(pools) })
	return slices.Collect(maps.Keys(in))
}

// beginning is the first word of a label of several, with what divides it from the next: "remuda-" of "remuda-small". Empty: it is one word.
func beginning(label string) string {
	return strings.ToLower(label[:strings.IndexAny(label, "-_.")+1])
}

// hosted are the beginnings of the labels of GitHub's own runners, which are no misspellings.
var hosted = []string{"ubuntu-", "windows-", "macos-"}

// isTypo: at most every fourth letter differs. anyDistance has no bound.
func isTypo(distance, letters int) bool { return distance <= letters/4 }
func anyDistance(int, int) bool         { return true }

// near is the label that differs in the fewest letters and in few enough, or "".
func near(label string, known []string, fewEnough func(distance, letters int) bool) string {
	lower := strings.ToLower(label)
	const longest = 64 // a workflow's author chose it
	if len(lower) > longest || slices.ContainsFunc(hosted, func(h string) bool { return strings.HasPrefix(lower, h) }) {
		return ""
	}
	best, least := "", 0
	for _, k := range known {
		if d := nearest.Distance(lower, strings.ToLower(k)); fewEnough(d, len(k)) && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}
