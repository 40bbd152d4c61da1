package agent

import (
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
)

// introduction is what the log of each job says of its host: how it came to the run, and what ran on it before. It is a group, which
// GitHub shows folded ("Workflow commands for GitHub Actions", docs.github.com). Empty for a host without a run, and where an older
// controld wrote the record.
func introduction(r lifecycle.Record) string {
	a := r.Arrival
	if a == nil || r.State == lifecycle.StateIdle {
		return ""
	}
	how, why := arrived(r)
	lines := []string{
		fmt.Sprintf("::group::Remuda: host %s (%s), %s", r.InstanceID, strings.Join(hardware(r), ", "), how),
		fmt.Sprintf("Asked for at %s and %s at %s, %s later.", clockTime(a.AskedAt), got(r), clockTime(a.At), max(0, a.At.Sub(a.AskedAt)).Round(100*time.Millisecond)),
		why,
	}
	if a.Held != "" {
		lines = append(lines, "What kept it: "+line.First(a.Held)+".")
	}
	lines = append(lines, before(r), "More: remuda why "+r.InstanceID, "::endgroup::")
	return strings.Join(lines, "\n") + "\n"
}

// launched reports whether the host was launched for the run that it serves.
func launched(r lifecycle.Record) bool { return r.Assignment == 1 }

func got(r lifecycle.Record) string {
	if launched(r) {
		return "launched"
	}
	return "claimed"
}

// arrived says in a word how quickly the host could be had, and in a sentence why.
func arrived(r lifecycle.Record) (how, why string) {
	switch {
	case launched(r):
		return "cold", "It was launched for this run: the pool had no clean host that the run may use."
	case r.Standby != nil:
		return "hot", "It had registered before the run asked, so the claim only set its labels."
	}
	return "warm", "It waited, clean, in pool " + r.Pool + "."
}

func hardware(r lifecycle.Record) (parts []string) {
	for _, part := range []string{r.InstanceType, string(r.UsageClass), r.Zone} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// before says what ran on the host before the run.
func before(r lifecycle.Record) string {
	since := clockTime(r.LaunchedAt)
	switch r.Uses {
	case 0, 1:
		return fmt.Sprintf("Nothing has run on it before. Its machine was launched at %s.", since)
	case 2:
		return fmt.Sprintf("One run was on it before, and it was reset after that. Its machine was launched at %s.", since)
	}
	return fmt.Sprintf("%d runs were on it before, and it was reset after each. Its machine was launched at %s.", r.Uses-1, since)
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05Z") }
