package state

import "time"

// RunnerRepository is the one repository that has releases.
const RunnerRepository = "actions/runner"

// Release is one release of actions/runner.
type Release struct {
	Tag         string    `json:"tag_name"`
	PublishedAt time.Time `json:"published_at"`
}

// KnownReleases are some that there were, newest first, until others are set.
var KnownReleases = []Release{
	{"v2.336.0", time.Date(2026, 7, 20, 18, 0, 0, 0, time.UTC)},
	{"v2.335.1", time.Date(2026, 6, 9, 2, 0, 0, 0, time.UTC)},
	{"v2.330.0", time.Date(2025, 11, 19, 15, 0, 0, 0, time.UTC)},
	{"v2.329.0", time.Date(2025, 10, 14, 15, 0, 0, 0, time.UTC)},
	{"v2.328.0", time.Date(2025, 8, 13, 15, 0, 0, 0, time.UTC)},
}
