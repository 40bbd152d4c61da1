package policy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// classLabel begins the label by which a job of a run names its resource class.
const classLabel = "remuda-"

var resourceClass = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// GitHub's runner gives itself some labels, whatever it is registered with:
// those that all hosts' runners have, and that of the machine that it is on.
var (
	universal     = []string{"self-hosted", "linux"}
	architectures = []string{"x64", "arm64"}
)

func isUniversal(label string) bool    { return slices.Contains(universal, label) }
func isArchitecture(label string) bool { return slices.Contains(architectures, label) }

// implicit reports whether a runner gives itself the label, in lower case.
func implicit(label string) bool { return isUniversal(label) || isArchitecture(label) }

// labelSet holds labels in lower case: GitHub compares them so.
type labelSet map[string]bool

func setOf(labels []string) labelSet {
	set := labelSet{}
	for _, l := range labels {
		set[strings.ToLower(l)] = true
	}
	return set
}

// serves reports whether runners with the labels of s can take a job with those of job, and how far s is from
// what the job says: by how many labels that only one of the two has.
func (s labelSet) serves(job labelSet) (distance int, ok bool) {
	named := false
	if job[architectures[0]] && job[architectures[1]] {
		return 0, false // no machine is both
	}
	for l := range job {
		switch {
		case s[l]:
			named = named || !implicit(l)
		case isUniversal(l):
		case isArchitecture(l) && !s[architectures[0]] && !s[architectures[1]]:
			distance++ // its hosts may be of any
		default:
			return 0, false
		}
	}
	for l := range s {
		if !job[l] && !isUniversal(l) {
			distance++
		}
	}
	return distance, named
}

// MatchPool returns the job pool that serves a job; pools are the labels of each pool by its name. A pool
// serves a job if all labels of the job are among the pool's own and those that every runner gives itself
// (self-hosted, linux, and x64 or arm64 unless the pool names one), and at least one is the pool's own. Case
// does not matter. Of several pools the most specific counts: the one with the fewest labels that the job
// does not have, then the first by name.
func MatchPool(pools map[string][]string, labels []string) (name string, ok bool) {
	job, least := setOf(labels), 0
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		if distance, serves := setOf(pools[pool]).serves(job); serves && (!ok || distance < least) {
			name, least, ok = pool, distance, true
		}
	}
	return name, ok
}

// ServesRepository reports whether a repository is among those that may use a job pool: names, or patterns
// such as acme/* in which a * stands for any characters but a slash. Case does not matter.
func ServesRepository(patterns []string, repository string) bool {
	repository = strings.ToLower(repository)
	return repository != "" && slices.ContainsFunc(patterns, func(p string) bool { return matches(strings.ToLower(p), repository) })
}

// RunLabels reports whether the labels of a job hold the id of its run, which says that it waits for the
// hosts of its run. rest are those that the runners need beside the run id and what they give themselves,
// each once and as it was written; the label of the class is one of them. class is the resource class of a
// label such as remuda-large: empty where there is none, or more than one.
func RunLabels(labels []string, runID string) (rest []string, class string, ok bool) {
	seen, classes := labelSet{}, 0
	for _, l := range labels {
		lower := strings.ToLower(l)
		if l == runID && runID != "" {
			ok = true
			continue
		}
		if seen[lower] || implicit(lower) {
			continue
		}
		seen[lower] = true
		rest = append(rest, l)
		if c, found := strings.CutPrefix(lower, classLabel); found && resourceClass.MatchString(c) {
			class = c
			classes++
		}
	}
	switch {
	case !ok:
		return nil, "", false
	case classes != 1:
		class = ""
	}
	return rest, class, true
}
