// Package checks decides what a check run says while jobs wait for hosts, and when it is written.
package checks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// Wait is a job or a request that has no host yet.
type Wait struct {
	Repository, RunID string
	// Request is true for a request of hosts, and false for a job.
	Request bool
	// Job is the name of a job. A workflow chooses it freely.
	Job   string
	Since time.Time
	Why   lifecycle.Reason
	Next  string
}

// Action is what is to be done about the check run of a workflow run.
type Action string

// The actions.
const (
	Complete Action = "complete"
	Create   Action = "create"
	Update   Action = "update"
)

// Step is one thing to do.
type Step struct {
	Action  Action
	Check   checkrun.Check
	Content checkrun.Content
}

const (
	// updateAfter is the least time between two writes of a check run.
	updateAfter = 5 * time.Minute
	// makingAtMost is how long a replica may take to make a check run. Another goes on after that.
	makingAtMost = time.Minute
	// refusedFor is for how long GitHub is not asked again after it took none.
	refusedFor = time.Hour
	// maxTitle, maxNames and maxReasons are what people read at a glance. A summary stays far below GitHub's 65,535 bytes.
	maxTitle   = 120
	maxNames   = 5
	maxReasons = 10
	// maxReason is how many characters of a reason are shown.
	maxReason = 1000
)

// Steps are what is to be done, in this order: check runs of runs that wait no more are completed, new ones made for those that wait longest, and the others
// renewed, the oldest first. after is for how long something waits before its run has one; 0: none are wanted any more. more: others wait that are not
// among these, so nothing is over for not being there.
func Steps(t checkrun.Table, waits []Wait, more bool, after time.Duration, now time.Time) (steps []Step) {
	for _, c := range t.Open {
		stays := after > 0 && (more || slices.ContainsFunc(waits, func(w Wait) bool { return c.Of(w.Repository, w.RunID) }))
		if wasRefused := c.Refused && c.ID != 0 && rests(c, now); !stays && !wasRefused {
			steps = append(steps, Step{Complete, c, finalContent(c, now)})
		}
	}
	if after == 0 {
		return steps
	}
	var updates []Step
	open := t.Count()
	for _, run := range byRun(waits, now.Add(-after)) {
		first, shown := run[0], digestOf(run)
		c, found := t.Find(first.Repository, first.RunID)
		switch {
		case !found && open >= checkrun.AtMost, found && rests(c, now):
		case c.ID == 0:
			if !found {
				open++
			}
			c = checkrun.Check{Repository: first.Repository, RunID: first.RunID, Since: first.Since, Shown: shown, TriedAt: now}
			steps = append(steps, Step{Create, c, contentOf(run)})
		case c.Shown != shown:
			c.Shown = shown
			updates = append(updates, Step{Update, c, contentOf(run)})
		}
	}
	slices.SortStableFunc(updates, func(a, b Step) int { return a.Check.TriedAt.Compare(b.Check.TriedAt) })
	return append(steps, updates...)
}

// Makes reports whether a replica that found that a run needs a check run still makes it: there is none, and no other replica is making it.
func Makes(t checkrun.Table, repository, runID string, now time.Time) bool {
	c, found := t.Find(repository, runID)
	return !found || c.ID == 0 && !rests(c, now)
}

// rests reports whether a check run is left alone, since it was written a short time ago.
func rests(c checkrun.Check, now time.Time) bool { return now.Before(c.TriedAt.Add(rest(c))) }

// rest is how long a check run is left alone after it was written.
func rest(c checkrun.Check) time.Duration {
	switch {
	case c.Refused:
		return refusedFor
	case c.ID == 0:
		return makingAtMost
	}
	return updateAfter
}

// byRun are the waits of each run that has waited since a time, the longest first in each, and of the runs.
func byRun(waits []Wait, since time.Time) (runs [][]Wait) {
	waits = slices.Clone(waits)
	slices.SortStableFunc(waits, func(a, b Wait) int { return a.Since.Compare(b.Since) })
	at := map[string]int{}
	for _, w := range waits {
		key := lifecycle.RunKey(w.Repository, w.RunID)
		i, found := at[key]
		switch {
		case found:
			runs[i] = append(runs[i], w)
		case !w.Since.After(since):
			at[key] = len(runs)
			runs = append(runs, []Wait{w})
		}
	}
	return runs
}

// contentOf is what the check run of a run says, whose waits are in the order in which they began.
func contentOf(run []Wait) checkrun.Content {
	var text strings.Builder
	groups := byReason(run)
	for _, group := range groups[:min(len(groups), maxReasons)] {
		first := group[0]
		fmt.Fprintf(&text, "**%s since %s** (`%s`): %s\n\n%s\n\n", whatWaits(group), clock(first.Since), first.Why.Code, code(first.Why.Text, maxReason), plain(first.Next))
		if names := names(group); names != "" {
			text.WriteString(names + "\n\n")
		}
	}
	if more := len(groups) - maxReasons; more > 0 {
		fmt.Fprintf(&text, "There %s %s.\n\n", plural.Word(more, "is", "are"), plural.Of(more, "other reason", "other reasons"))
	}
	text.WriteString("Remuda writes this while something waits for hosts, and completes it once nothing does.\n")
	return checkrun.Content{Title: cut(whatWaits(run)+": "+run[0].Why.Text, maxTitle), Summary: text.String()}
}

// clock is a time for people.
func clock(t time.Time) string { return t.UTC().Format("Jan 2 15:04 MST") }

// digestOf is the same while the same jobs wait for the same kinds of reasons: places in a line and counts change with each job.
func digestOf(run []Wait) string {
	var said []string
	for _, w := range run {
		said = append(said, string(w.Why.Code)+" "+w.Job)
	}
	slices.Sort(said)
	sum := sha256.Sum256([]byte(strings.Join(said, "\n")))
	return hex.EncodeToString(sum[:8])
}

// byReason are groups of waits with the same reason, in the order of their first.
func byReason(run []Wait) (groups [][]Wait) {
	for _, w := range run {
		i := slices.IndexFunc(groups, func(g []Wait) bool { return g[0].Why.Text == w.Why.Text && g[0].Request == w.Request })
		if i < 0 {
			groups = append(groups, []Wait{w})
			continue
		}
		groups[i] = append(groups[i], w)
	}
	return groups
}

// whatWaits is "2 jobs have waited for hosts".
func whatWaits(group []Wait) string {
	jobs := 0
	for _, w := range group {
		if !w.Request {
			jobs++
		}
	}
	switch {
	case jobs == 0:
		return "the run has waited for its hosts"
	case jobs == 1:
		return "a job has waited for a host"
	}
	return fmt.Sprintf("%d jobs have waited for hosts", jobs)
}

// names are the jobs by name.
func names(group []Wait) string {
	var list []string
	for _, w := range group {
		if w.Job != "" {
			list = append(list, "- "+code(w.Job, maxTitle))
		}
	}
	if more := len(list) - maxNames; more > 0 {
		list = append(list[:maxNames], fmt.Sprintf("- and %d more", more))
	}
	return strings.Join(list, "\n")
}

// code is a text as code in Markdown. Names of jobs, and labels in reasons, are chosen by workflows: they must be no Markdown, links or mentions.
func code(text string, most int) string {
	return "`" + strings.Map(func(r rune) rune {
		if r == '`' || r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, cut(text, most)) + "`"
}

// markdown are the characters that Markdown gives a meaning.
var markdown = strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "\\<", ">", "\\>", "|", "\\|", "\n", " ", "\r", " ")

// plain is a text of our own, with names from the configuration, as Markdown shows it unchanged.
func plain(text string) string { return markdown.Replace(cut(text, maxReason)) }

// cut bounds a text by characters.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// finalContent is what a check run says at its end.
func finalContent(c checkrun.Check, now time.Time) checkrun.Content {
	return checkrun.Content{
		Title: fmt.Sprintf("nothing waits for hosts any more, after %s", now.Sub(c.Since).Round(time.Second)), Conclusion: checkrun.Neutral,
		Summary: fmt.Sprintf("Something of this run waited for hosts from %s to %s.\n", clock(c.Since), clock(now)),
	}
}

// Refused is what the check run of jobs says that get no host, whatever happens.
func Refused(why lifecycle.Reason) checkrun.Content {
	return checkrun.Content{
		Title: cut(why.Text, maxTitle), Conclusion: checkrun.ActionRequired,
		Summary: fmt.Sprintf("(`%s`) %s\n\nGitHub goes on queuing the job, for at most a day: cancel the run, or correct what keeps the job from a host.\n", why.Code, code(why.Text, maxReason)),
	}
}
