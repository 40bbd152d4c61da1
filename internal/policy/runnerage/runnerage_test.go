package runnerage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/policy/runnerage"
)

// runnerDay is a moment of a day of 2026.
func runnerDay(month time.Month, day int) time.Time {
	return time.Date(2026, month, day, 16, 30, 0, 0, time.UTC)
}

func release(version string, month time.Month, day int) runnerage.Release {
	return runnerage.Release{Version: version, PublishedAt: runnerDay(month, day)}
}

// runnerReleases are not in order, as a list that was edited may be.
var runnerReleases = []runnerage.Release{
	release("v2.331.0", time.March, 10),
	release("v2.330.0", time.February, 1),
	release("v2.331.1", time.March, 20),
	release("v2.329.0", time.January, 5),
	release("v2.340.0-rc.1", time.January, 6),
	release("v2.9.0", time.January, 7),
	{Version: "v2.350.0"},
	release("latest", time.January, 8),
}

func TestRunnerEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, version string
		want          time.Time // zero: it does not end
	}{
		{"30 days after the next release", "2.329.0", runnerDay(time.March, 3)},
		{"after the first of two that are newer", "2.330.0", runnerDay(time.April, 9)},
		{"after a patch release", "2.331.0", runnerDay(time.April, 19)},
		{"the newest", "2.331.1", time.Time{}},
		{"newer than the newest", "3.0.0", time.Time{}},
		{"as its tag", "v2.329.0", runnerDay(time.March, 3)},
		{"between two that are known", "2.330.7", runnerDay(time.April, 9)},
		{"older than all that are known", "2.8.9", runnerDay(time.February, 4)},
		{"numbers and not text", "2.10.0", runnerDay(time.February, 4)},
		{"none", "", time.Time{}},
		{"a prerelease", "2.329.0-beta", time.Time{}},
		{"two numbers", "2.329", time.Time{}},
		{"four numbers", "2.329.0.1", time.Time{}},
		{"no numbers", "a.b.c", time.Time{}},
		{"below zero", "2.-1.0", time.Time{}},
		{"signed", "+2.329.0", time.Time{}},
		{"too large to be one", "2.329.99999999999999999999", time.Time{}},
		{"spaces", " 2.329.0", time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := runnerage.Ends(tt.version, runnerReleases)
			if ok != !tt.want.IsZero() || !got.Equal(tt.want) {
				t.Errorf("RunnerEnds(%q) = %s, %t, want %s", tt.version, got, ok, tt.want)
			}
		})
	}
}

func TestRunnerWarning(t *testing.T) {
	t.Parallel()
	const remedy = ": put runner 2.331.1 into the image and let hosts be replaced"
	ends := runnerDay(time.April, 9)
	for _, tt := range []struct {
		name, version string
		now           time.Time
		want          string
	}{
		{"more than 10 days ahead", "2.330.0", ends.Add(-240*time.Hour - time.Nanosecond), ""},
		{"10 days ahead", "2.330.0", ends.Add(-240 * time.Hour), "runner 2.330.0 gets no jobs from 2026-04-09 on, in 10 days" + remedy},
		{"not quite 3 days", "2.330.0", ends.Add(-72*time.Hour + time.Second), "runner 2.330.0 gets no jobs from 2026-04-09 on, in 2 days" + remedy},
		{"a day ahead", "2.330.0", ends.Add(-24 * time.Hour), "runner 2.330.0 gets no jobs from 2026-04-09 on, in 1 day" + remedy},
		{"an hour ahead", "2.330.0", ends.Add(-time.Hour), "runner 2.330.0 gets no jobs from 2026-04-09 on, in less than a day" + remedy},
		{"over", "2.330.0", ends, "runner 2.330.0 gets no jobs since 2026-04-09" + remedy},
		{"long over", "2.330.0", ends.AddDate(1, 0, 0), "runner 2.330.0 gets no jobs since 2026-04-09" + remedy},
		{"as its tag, elsewhere", "v2.330.0", ends.In(time.FixedZone("", 14*3600)), "runner 2.330.0 gets no jobs since 2026-04-09" + remedy},
		{"two releases back", "2.9.0", ends, "runner 2.9.0 gets no jobs since 2026-02-04" + remedy},
		{"the newest", "2.331.1", ends.AddDate(9, 0, 0), ""},
		{"no version", "2.330.0\n", ends, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := runnerage.Warning(tt.version, runnerReleases, tt.now)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("says %q, %t\nwant %q", got, ok, tt.want)
			}
		})
	}
	if got, ok := runnerage.Warning("2.330.0", nil, ends); ok {
		t.Errorf("says %q without knowing any release", got)
	}
}

// FuzzRunnerWarning: the version is what a host reports. No part of it but
// numbers comes into the sentence.
func FuzzRunnerWarning(f *testing.F) {
	for _, version := range []string{"2.330.0", "v2.330.0", "2.330", "", "2.330.0\nrunner 9.9.9 gets no jobs", "002.1.1"} {
		f.Add(version)
	}
	now := runnerDay(time.December, 1)
	f.Fuzz(func(t *testing.T, version string) {
		says, ok := runnerage.Warning(version, runnerReleases, now)
		if _, ends := runnerage.Ends(version, runnerReleases); ok != ends {
			t.Fatalf("%q ends: %t, and is warned of: %t", version, ends, ok)
		}
		if !ok {
			return
		}
		number, rest, _ := strings.Cut(strings.TrimPrefix(says, "runner "), " ")
		if strings.Trim(number, "0123456789.") != "" || len(number) > 32 || !strings.HasPrefix(rest, "gets no jobs since 2026-") {
			t.Fatalf("%q says %q", version, says)
		}
	})
}
