// Package runnerage says when GitHub stops to give jobs to a version of actions/runner.
package runnerage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// runnerGrace is how long after the release that followed it a runner version gets jobs: "If you do not
// perform a software update within 30 days, the GitHub Actions service will not queue jobs to your runner",
// and major, minor and patch releases all count (docs.github.com, "Self-hosted runners reference", runner
// software updates). Image builds pin the runner's version, so nothing updates it but a new image.
const runnerGrace = 30 * 24 * time.Hour

// runnerNotice is how long ahead of its end a version is warned of: time enough
// for an image to be built, and for hosts to be replaced as they end.
const runnerNotice = 10 * 24 * time.Hour

// Release is one release of actions/runner. GitHub marks those it has not rolled
// out to all as prereleases: the adapter that lists releases leaves these out.
type Release struct {
	// Version is its tag or number, such as "v2.330.0" or "2.330.0". One of
	// another form, such as that of a prerelease, does not count.
	Version string
	// PublishedAt is when it was published. Without it, as a draft has it, it does not count.
	PublishedAt time.Time
}

// Ends is when runners of a version stop getting jobs: 30 days after the first release that is newer.
// false: no version of a release, or none is newer. releases may be in any order. When the list does not go
// back to the version, the end lies at that moment or earlier. GitHub may end a version sooner for its
// security, and has ended some later.
func Ends(version string, releases []Release) (time.Time, bool) {
	_, ends, _, ok := runnerEnds(version, releases)
	return ends, ok
}

// Warning is a sentence for people from 10 days before runners of a
// version stop getting jobs, and ever after: which version, on which day (UTC),
// in how many full days, and what is to be done. false: there is nothing to say.
func Warning(version string, releases []Release, now time.Time) (string, bool) {
	own, ends, newest, ok := runnerEnds(version, releases)
	if !ok || ends.Sub(now) > runnerNotice {
		return "", false
	}
	day := ends.UTC().Format(time.DateOnly)
	since := "from " + day + " on, in less than a day"
	switch days := int(ends.Sub(now) / (24 * time.Hour)); {
	case !now.Before(ends):
		since = "since " + day
	case days == 1:
		since = fmt.Sprintf("from %s on, in 1 day", day)
	case days > 0:
		since = fmt.Sprintf("from %s on, in %d days", day, days)
	}
	return fmt.Sprintf("runner %s gets no jobs %s: put runner %s into the image and let hosts be replaced", own, since, newest), true
}

// runnerEnds is when a version ends and the newest there is; false if it is no version, or no release is newer.
func runnerEnds(version string, releases []Release) (own runnerVersion, ends time.Time, newest runnerVersion, ok bool) {
	own, is := parseVersion(version)
	if !is {
		return own, ends, newest, false
	}
	for _, r := range releases {
		v, valid := parseVersion(r.Version)
		if !valid || r.PublishedAt.IsZero() || v.compare(own) <= 0 {
			continue
		}
		if at := r.PublishedAt.Add(runnerGrace); !ok || at.Before(ends) {
			ends = at
		}
		if !ok || v.compare(newest) > 0 {
			newest = v
		}
		ok = true
	}
	return own, ends, newest, ok
}

// runnerVersion is major, minor and patch.
type runnerVersion [3]uint64

// parseVersion reads three numbers with dots between them, and a v before them
// or not; nothing else, since the version comes from a host.
func parseVersion(text string) (v runnerVersion, ok bool) {
	parts := strings.Split(strings.TrimPrefix(text, "v"), ".")
	if len(parts) != len(v) {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

func (v runnerVersion) compare(o runnerVersion) int {
	return slices.Compare(v[:], o[:])
}

func (v runnerVersion) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }
