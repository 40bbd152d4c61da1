package agent

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/arrival"
	"github.com/remuda-ci/remuda/internal/lifecycle/line"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
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
	lines := []string{fmt.Sprintf("::group::Remuda: host %s (%s), %s", r.InstanceID, strings.Join(hardware(r), ", "), how)}
	lines = append(lines, asked(r)...)
	if a.Held != "" {
		lines = append(lines, fmt.Sprintf("What kept it (%s): %s.", a.HeldBy, line.First(a.Held)))
	}
	lines = append(lines, why)
	if a.Chosen != "" {
		lines = append(lines, "It was chosen of the idle hosts, since "+line.First(a.Chosen)+".")
	}
	lines = append(lines, before(r), "More: remuda why "+r.InstanceID, "::endgroup::")
	return strings.Join(lines, "\n") + "\n"
}

// asked says when the host was asked for and got, and for which job, if one is known. Which job a job-scoped host gets is GitHub's choice.
func asked(r lifecycle.Record) (lines []string) {
	a, after := r.Arrival, ""
	switch {
	case slots.IsSpare(r.RunID):
		lines = append(lines, "It was asked for as one of the minimum of pool "+r.Pool+", before a job waited for it.")
	case !a.QueuedAt.IsZero():
		job := "The job that it was asked for was queued at " + clockTime(a.QueuedAt) + "."
		if r.JobsOf != "" {
			job += " GitHub may have given it another one."
		}
		lines, after = append(lines, job), fmt.Sprintf(", %s after that,", between(a.QueuedAt, a.AskedAt))
	}
	return append(lines, fmt.Sprintf("Asked for at %s%s and %s at %s, %s later.", clockTime(a.AskedAt), after, got(r), clockTime(a.At), between(a.AskedAt, a.At)))
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
		return "cold", cold(r)
	case r.Standby != nil:
		return "hot", "It began to register before it was claimed, so the claim only set its labels."
	}
	return "warm", "It waited, clean, in pool " + r.Pool + "."
}

// cold says why the run, or the job, has no idle host.
func cold(r lifecycle.Record) string {
	user := "this run"
	if r.JobsOf != "" {
		user = "a job"
	}
	missed := r.Arrival.Missed
	if len(missed) == 0 {
		return fmt.Sprintf("It was launched for %s, since pool %s had no idle host left.", user, r.Pool)
	}
	parts := make([]string, 0, len(missed))
	for _, m := range missed {
		parts = append(parts, missedWords(m, r.Pool))
	}
	return fmt.Sprintf("It was launched for %s, since no idle host would do: %s.", user, strings.Join(parts, ", "))
}

// missedWords are a clause about idle hosts that a request could not have. They name no run and no repository, which those who read the log may
// not know.
func missedWords(m arrival.Miss, pool string) string {
	switch m {
	case arrival.MissOneRun:
		return "pool " + pool + " gives new hosts to each run"
	case arrival.MissPool:
		return "some are of another pool"
	case arrival.MissTrust:
		return "some are kept for other repositories"
	case arrival.MissType:
		return "some have an instance type that it may not use"
	case arrival.MissSize:
		return "some are smaller than their class is by now"
	case arrival.MissLeaving:
		return "some are about to end"
	case arrival.MissHeld:
		return "some are held by an operator"
	case arrival.MissLost:
		return "some were taken, or had left, before it could claim them"
	}
	return string(m)
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
		return fmt.Sprintf("One run was on it before%s, and it was reset after that. Its machine was launched at %s.", lastRun(r, ": "), since)
	}
	return fmt.Sprintf("%d runs were on it before%s, and it was reset after each. Its machine was launched at %s.", r.Uses-1, lastRun(r, ", the last one "), since)
}

// lastRun names the run before after some words, if all readers of the log may know it: those of its own repository.
func lastRun(r lifecycle.Record, words string) string {
	repository, run := r.RunBefore()
	if run == "" || !strings.EqualFold(repository, cmp.Or(r.JobsOf, r.Repository)) { // of an owner's host the job may be of any repository
		return ""
	}
	return words + "run " + run + " of " + repository
}

// between is how much later a time is. The clocks of two replicas may differ.
func between(from, to time.Time) time.Duration {
	return max(0, to.Sub(from)).Round(100 * time.Millisecond)
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05Z") }
