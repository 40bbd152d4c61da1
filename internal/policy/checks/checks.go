// Package checks decides what a check run says while jobs wait for hosts, and when it is written.
package checks

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
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
	Create   Action = "create"
	Update   Action = "update"
	Complete Action = "complete"
)

// Step is one thing to do.
type Step struct {
	Action  Action
	Check   checkrun.Check
	Content checkrun.Content
}

const (
	// updateAfter is the least time between two writes of a check run: places in a line change with each job.
	updateAfter = time.Minute
	// maxTitle, maxNames and maxReasons are what people read at a glance. A summary stays far below GitHub's 65,535 characters.
	maxTitle   = 120
	maxNames   = 5
	maxReasons = 10
	// maxReason is how many characters of a reason are shown.
	maxReason = 1000
)

// Steps are what is to be done: the check runs that are over first, then those that wait longest. after is for how long something waits before it has one.
func Steps(t checkrun.Table, waits []Wait, after time.Duration, now time.Time) (steps []Step) {
	runs := byRun(waits, now.Add(-after))
	for _, c := range t.Open {
		if !slices.ContainsFunc(waits, func(w Wait) bool { return c.Of(w.Repository, w.RunID) }) {
			steps = append(steps, Step{Complete, c, over(c, now)})
		}
	}
	open := len(t.Open) - len(steps)
	for _, run := range runs {
		first := run[0]
		c, is := t.Find(first.Repository, first.RunID)
		content := of(run)
		shown := Digest(content)
		switch {
		case !is && open < checkrun.AtMost:
			open++
			steps = append(steps, Step{Create, checkrun.Check{Repository: first.Repository, RunID: first.RunID, Since: first.Since, Shown: shown, ShownAt: now}, content})
		case is && c.ID != 0 && c.Shown != shown && !now.Before(c.ShownAt.Add(updateAfter)):
			c.Shown, c.ShownAt = shown, now
			steps = append(steps, Step{Update, c, content})
		}
	}
	return steps
}

// byRun are the waits of each run that has waited since a time, the longest first in each, and of the runs.
func byRun(waits []Wait, since time.Time) (runs [][]Wait) {
	waits = slices.Clone(waits)
	slices.SortStableFunc(waits, func(a, b Wait) int { return a.Since.Compare(b.Since) })
	at := map[string]int{}
	for _, w := range waits {
		key := lifecycle.RunKey(w.Repository, w.RunID)
		i, is := at[key]
		switch {
		case is:
			runs[i] = append(runs[i], w)
		case !w.Since.After(since):
			at[key] = len(runs)
			runs = append(runs, []Wait{w})
		}
	}
	return runs
}

// of is what the check run of a run says, whose waits are in the order in which they began.
func of(run []Wait) checkrun.Content {
	var text strings.Builder
	groups := byReason(run)
	for _, group := range groups[:min(len(groups), maxReasons)] {
		first := group[0]
		fmt.Fprintf(&text, "**%s since %s.** %s (`%s`). %s\n", whatWaits(group), first.Since.UTC().Format("15:04:05Z"), sentence(first.Why.Text), first.Why.Code, markdown.Replace(first.Next))
		if names := names(group); names != "" {
			fmt.Fprintf(&text, "\n%s\n", names)
		}
		text.WriteString("\n")
	}
	if more := len(groups) - maxReasons; more > 0 {
		fmt.Fprintf(&text, "There are %d other reasons.\n\n", more)
	}
	text.WriteString("Remuda writes this while something waits for hosts, and completes it once nothing does.\n")
	return checkrun.Content{Title: cut(whatWaits(run) + ": " + run[0].Why.Text), Summary: text.String()}
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

// whatWaits is "2 jobs wait for a host".
func whatWaits(group []Wait) string {
	jobs := 0
	for _, w := range group {
		if !w.Request {
			jobs++
		}
	}
	switch {
	case jobs == 0:
		return "the run waits for its hosts"
	case jobs == 1:
		return "a job waits for a host"
	}
	return fmt.Sprintf("%d jobs wait for hosts", jobs)
}

// names are the jobs by name, as code: a workflow chooses the names, and they must not be read as Markdown.
func names(group []Wait) string {
	var list []string
	for _, w := range group {
		if w.Job != "" {
			list = append(list, "- `"+strings.Map(plain, cut(w.Job))+"`")
		}
	}
	if more := len(list) - maxNames; more > 0 {
		list = append(list[:maxNames], fmt.Sprintf("- and %d more", more))
	}
	return strings.Join(list, "\n")
}

// plain leaves out what ends a span of code or its line.
func plain(r rune) rune {
	if r == '`' || r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// markdown are the characters that Markdown gives a meaning. A reason may have a label that a workflow chose.
var markdown = strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "\\<", ">", "\\>", "!", "\\!", "|", "\\|", "~", "\\~",
	"#", "\\#", "\n", " ", "\r", " ")

// sentence is a text that begins as a sentence does, and is shown as it is.
func sentence(text string) string {
	if runes := []rune(text); len(runes) > maxReason {
		text = string(runes[:maxReason]) + "…"
	}
	first := min(1, len(text))
	return markdown.Replace(strings.ToUpper(text[:first]) + text[first:])
}

// cut bounds a text by characters.
func cut(text string) string {
	runes := []rune(text)
	if len(runes) <= maxTitle {
		return text
	}
	return string(runes[:maxTitle-1]) + "…"
}

// over is what a check run says at its end.
func over(c checkrun.Check, now time.Time) checkrun.Content {
	waited := now.Sub(c.Since).Round(time.Second)
	return checkrun.Content{
		Title: fmt.Sprintf("nothing waits for hosts any more, after %s", waited), Conclusion: checkrun.Neutral,
		Summary: fmt.Sprintf("Something of this run waited for hosts from %s to %s.\n", c.Since.UTC().Format("15:04:05Z"), now.UTC().Format("15:04:05Z")),
	}
}

// Refused is what the check run of a job says that gets no host, whatever happens.
func Refused(why lifecycle.Reason) checkrun.Content {
	return checkrun.Content{
		Title: cut(why.Text), Conclusion: checkrun.ActionRequired,
		Summary: fmt.Sprintf("%s (`%s`). GitHub goes on queuing the job, for at most a day: cancel the run, or correct what keeps the job from a host.\n", sentence(why.Text), cmp.Or(why.Code, lifecycle.CodeOf(lifecycle.ActionRefuseJob))),
	}
}

// Digest is the same for the same content.
func Digest(c checkrun.Content) string {
	sum := sha256.Sum256([]byte(c.Title + "\x00" + c.Summary + "\x00" + c.Conclusion))
	return hex.EncodeToString(sum[:8])
}
