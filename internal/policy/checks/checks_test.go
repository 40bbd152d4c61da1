package checks_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/checkrun"
	"github.com/remuda-ci/remuda/internal/policy/checks"
)

var now = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

const after = 2 * time.Minute

// waits is a job that has waited so long.
func waits(run, job string, long time.Duration) checks.Wait {
	return checks.Wait{
		Repository: "acme/app", RunID: run, Job: job, Since: now.Add(-long),
		Why: lifecycle.Because(lifecycle.ReasonPoolFull, "pool small is full"), Next: "It gets a host when one is free.",
	}
}

// taken are steps, each in a few words.
func taken(steps []checks.Step) []string {
	var list []string
	for _, s := range steps {
		list = append(list, fmt.Sprintf("%s %s: %s", s.Action, s.Check.RunID, s.Content.Title))
	}
	return list
}

func TestSteps(t *testing.T) {
	t.Parallel()
	long := waits("1", "build", 3*time.Minute)
	created := checks.Steps(checkrun.Table{}, []checks.Wait{long}, after, now)[0].Check
	created.ID = 7
	shown := checkrun.Table{Open: []checkrun.Check{created}}
	other := long
	other.Why = lifecycle.Because(lifecycle.ReasonPoolPaused, "pool small is paused")
	refused := created
	refused.ID = 0
	for name, c := range map[string]struct {
		table checkrun.Table
		waits []checks.Wait
		at    time.Time
		want  []string
	}{
		"nothing waits":                   {},
		"a job waits for a short time":    {waits: []checks.Wait{waits("1", "build", after-time.Second)}},
		"a job waits for long":            {waits: []checks.Wait{waits("1", "build", after)}, want: []string{"create 1: a job waits for a host: pool small is full"}},
		"a run has one check run":         {waits: []checks.Wait{long, waits("1", "test", time.Second)}, want: []string{"create 1: 2 jobs wait for hosts: pool small is full"}},
		"what waits longest is first":     {waits: []checks.Wait{long, waits("2", "", time.Hour)}, want: []string{"create 2: a job waits for a host: pool small is full", "create 1: a job waits for a host: pool small is full"}},
		"it says so already":              {table: shown, waits: []checks.Wait{long}, at: now.Add(time.Hour)},
		"the reason has changed":          {table: shown, waits: []checks.Wait{other}, at: now.Add(time.Minute), want: []string{"update 1: a job waits for a host: pool small is paused"}},
		"the reason has changed just now": {table: shown, waits: []checks.Wait{other}, at: now.Add(59 * time.Second)},
		"GitHub took none":                {table: checkrun.Table{Open: []checkrun.Check{refused}}, waits: []checks.Wait{other}, at: now.Add(time.Hour)},
		"nothing waits any more":          {table: shown, want: []string{"complete 1: nothing waits for hosts any more, after 3m0s"}},
		"the run is another repository's": {table: shown, waits: []checks.Wait{func() checks.Wait { w := long; w.Repository = "acme/web"; return w }()}, want: []string{"complete 1: nothing waits for hosts any more, after 3m0s", "create 1: a job waits for a host: pool small is full"}},
		"the repository in another case":  {table: shown, waits: []checks.Wait{func() checks.Wait { w := long; w.Repository = "Acme/App"; return w }()}},
		"another job of the run waits on": {table: shown, waits: []checks.Wait{waits("1", "build", time.Second)}},
		"a request waits":                 {waits: []checks.Wait{func() checks.Wait { w := long; w.Request = true; return w }()}, want: []string{"create 1: the run waits for its hosts: pool small is full"}},
	} {
		at := c.at
		if at.IsZero() {
			at = now
		}
		if diff := cmp.Diff(c.want, taken(checks.Steps(c.table, c.waits, after, at))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestManyRuns: as many check runs are open as the table has room for, and one that is over makes room.
func TestManyRuns(t *testing.T) {
	t.Parallel()
	var all []checks.Wait
	table := checkrun.Table{}
	for i := range checkrun.AtMost + 10 {
		all = append(all, waits(fmt.Sprint(i), "", time.Hour-time.Duration(i)*time.Second))
	}
	steps := checks.Steps(table, all, after, now)
	if len(steps) != checkrun.AtMost || steps[0].Check.RunID != "0" {
		t.Fatalf("%d steps, the first for %s", len(steps), steps[0].Check.RunID)
	}
	for _, s := range steps {
		s.Check.ID = 1
		table = table.With(s.Check)
	}
	got := checks.Steps(table, all[1:], after, now)
	if len(got) != 2 || got[0].Action != checks.Complete || got[1].Action != checks.Create || got[1].Check.RunID != fmt.Sprint(checkrun.AtMost) {
		t.Errorf("%v", taken(got))
	}
}

// TestSummary is read by people, and the names in it are chosen by workflows.
func TestSummary(t *testing.T) {
	t.Parallel()
	list := []checks.Wait{waits("1", "build `x`\n# loud <img src=x>", 5*time.Minute)}
	for i := range 7 {
		list = append(list, waits("1", fmt.Sprint("test ", i), 4*time.Minute))
	}
	other := waits("1", "deploy", 3*time.Minute)
	other.Why = lifecycle.Because(lifecycle.ReasonQuota, "limits.hosts_per_repository allows 2 hosts")
	got := checks.Steps(checkrun.Table{}, append(list, other), after, now)[0].Content
	want := "**8 jobs wait for hosts since 09:55:00Z.** Pool small is full (`pool_full`). It gets a host when one is free.\n\n" +
		"- `build  x  # loud <img src=x>`\n- `test 0`\n- `test 1`\n- `test 2`\n- `test 3`\n- and 3 more\n\n" +
		"**a job waits for a host since 09:57:00Z.** Limits.hosts\\_per\\_repository allows 2 hosts (`quota`). It gets a host when one is free.\n\n- `deploy`\n\n" +
		"Remuda writes this while something waits for hosts, and completes it once nothing does.\n"
	if diff := cmp.Diff(want, got.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	long := waits("1", strings.Repeat("ü", 70_000), time.Hour)
	long.Why.Text = strings.Repeat("ü", 70_000)
	var many []checks.Wait
	for i := range 256 {
		w := long
		w.Why.Text += fmt.Sprint(i)
		w.Next = long.Why.Text[:2000]
		many = append(many, w)
	}
	many[0].Why.Text = "1" + many[0].Why.Text
	got = checks.Steps(checkrun.Table{}, many, after, now)[0].Content
	if title, summary := len([]rune(got.Title)), len([]rune(got.Summary)); title > 120 || summary > 65_535 || !strings.Contains(got.Summary, "There are 246 other reasons.") {
		t.Errorf("a title of %d characters, a summary of %d", title, summary)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	loud := checks.Refused(lifecycle.Because(lifecycle.ReasonNotServed, "no pool has the label %s", "![x](https://evil.example)<b>\n# big"))
	if !strings.HasPrefix(loud.Summary, `No pool has the label \!\[x\](https://evil.example)\<b\> \# big (`) {
		t.Errorf("a label is read as Markdown: %s", loud.Summary)
	}
	got := checks.Refused(lifecycle.Because(lifecycle.ReasonNotServed, "acme/app may not use job pool small"))
	if got.Conclusion != checkrun.ActionRequired || !strings.Contains(got.Summary, "may not use job pool small (`not_served`)") || got.Title != "acme/app may not use job pool small" {
		t.Errorf("%+v", got)
	}
}
