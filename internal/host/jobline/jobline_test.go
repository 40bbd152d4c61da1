package jobline

import (
	"strings"
	"testing"
	"time"
)

func TestReader(t *testing.T) {
	t.Parallel()
	const (
		at    = "2026-01-01 12:00:00Z: "
		taken = at + "Running job: build\n"
		over  = "2026-01-01 12:00:09Z: Job build completed with result: Succeeded\n"
	)
	for name, test := range map[string]struct {
		output string
		has    bool
		number int
	}{
		"nothing":                       {"", false, 0},
		"idle":                          {at + "Listening for Jobs\n", false, 0},
		"taken":                         {at + "Listening for Jobs\n" + taken, true, 1},
		"not a whole line":              {strings.TrimSuffix(taken, "\n"), false, 0},
		"over":                          {taken + over, false, 1},
		"the next":                      {taken + over + taken, true, 2},
		"printed by something else":     {"Running job: build\n" + "x " + taken, false, 0},
		"a name like an end":            {at + "Running job: completed with result: Succeeded\n", true, 1},
		"a name like a begin":           {taken + at + "Job x: Running job: y completed with result: Failed\n", false, 1},
		"a long name":                   {at + "Running job: " + strings.Repeat("x", 3*longestLine) + "\n", true, 1},
		"after a line without an end":   {strings.Repeat("x", 3*longestLine) + "\n" + taken, true, 1},
		"a worker that was killed":      {taken + at + "Job build completed with result: Failed\n", false, 1},
		"a canceled one, carriage back": {taken + at + "Job build completed with result: Canceled\r\n", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 7, 1 << 20} {
				var l Reader
				for rest := test.output; rest != ""; rest = rest[min(size, len(rest)):] {
					if _, err := l.Write([]byte(rest[:min(size, len(rest))])); err != nil {
						t.Fatal(err)
					}
				}
				got := l.Job()
				if has := !got.At.IsZero(); has != test.has || got.Number != test.number {
					t.Errorf("in pieces of %d: %+v", size, got)
				}
				if test.has && !got.At.Equal(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)) {
					t.Errorf("taken at %s", got.At)
				}
				if l.Restart(); l.Job() != (Job{}) {
					t.Error("it remembers what comes again")
				}
			}
		})
	}
}
