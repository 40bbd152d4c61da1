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
	created := checks.Steps(checkrun.Table{}, []checks.Wait{long}, false, after, now)[0].Check
	making := created
	created.ID = 7
	with := func(c checkrun.Check, change func(*checkrun.Check)) checkrun.Table {
		change(&c)
		return checkrun.Table{Open: []checkrun.Check{c}}
	}
	shown := with(created, func(*checkrun.Check) {})
	other := long
	other.Why = lifecycle.Because(lifecycle.ReasonPoolPaused, "pool small is paused")
	counted := long
	counted.Why.Text += ", and 3 of them are at work"
	in := func(repository string) checks.Wait { w := long; w.Repository = repository; return w }
	const full, over = ": a job has waited for a host: pool small is full", ": nothing waits for hosts any more, after 3m0s"
	for name, c := range map[string]struct {
		table checkrun.Table
		waits []checks.Wait
		more  bool
		off   bool
		at    time.Time
		want  []string
	}{
		"nothing waits":                   {},
		"a job waits for a short time":    {waits: []checks.Wait{waits("1", "build", after-time.Second)}},
		"a job waits for long":            {waits: []checks.Wait{waits("1", "build", after)}, want: []string{"create 1" + full}},
		"a run has one check run":         {waits: []checks.Wait{long, waits("1", "test", time.Second)}, want: []string{"create 1: 2 jobs have waited for hosts: pool small is full"}},
		"what waits longest is first":     {waits: []checks.Wait{long, waits("2", "", time.Hour)}, want: []string{"create 2" + full, "create 1" + full}},
		"it says so already":              {table: shown, waits: []checks.Wait{long}, at: now.Add(time.Hour)},
		"only counts have changed":        {table: shown, waits: []checks.Wait{counted}, at: now.Add(time.Hour)},
		"the reason has changed":          {table: shown, waits: []checks.Wait{other}, at: now.Add(5 * time.Minute), want: []string{"update 1: a job has waited for a host: pool small is paused"}},
		"the reason has changed just now": {table: shown, waits: []checks.Wait{other}, at: now.Add(5*time.Minute - 1)},
		"another replica makes it":        {table: with(making, func(*checkrun.Check) {}), waits: []checks.Wait{long}, at: now.Add(time.Minute - 1)},
		"the one who made it is gone":     {table: with(making, func(*checkrun.Check) {}), waits: []checks.Wait{long}, at: now.Add(time.Minute), want: []string{"create 1" + full}},
		"GitHub took none":                {table: with(making, func(c *checkrun.Check) { c.Refused = true }), waits: []checks.Wait{other}, at: now.Add(time.Hour - 1)},
		"GitHub took none an hour ago":    {table: with(making, func(c *checkrun.Check) { c.Refused = true }), waits: []checks.Wait{long}, at: now.Add(time.Hour), want: []string{"create 1" + full}},
		"nothing waits any more":          {table: shown, want: []string{"complete 1" + over}},
		"its end was refused":             {table: with(created, func(c *checkrun.Check) { c.Refused = true }), at: now.Add(time.Hour - 1)},
		"more waits than is listed":       {table: shown, more: true},
		"they are turned off":             {table: shown, waits: []checks.Wait{long, waits("2", "", time.Hour)}, more: true, off: true, want: []string{"complete 1" + over}},
		"the run is another repository's": {table: shown, waits: []checks.Wait{in("acme/web")}, want: []string{"complete 1" + over, "create 1" + full}},
		"the repository in another case":  {table: shown, waits: []checks.Wait{in("Acme/App")}},
		"another job of the run waits on": {table: shown, waits: []checks.Wait{waits("1", "build", time.Second)}},
		"a request waits":                 {waits: []checks.Wait{func() checks.Wait { w := long; w.Request = true; return w }()}, want: []string{"create 1: the run has waited for its hosts: pool small is full"}},
	} {
		at, wait := c.at, after
		if at.IsZero() {
			at = now
		}
		if c.off {
			wait = 0
		}
		if diff := cmp.Diff(c.want, taken(checks.Steps(c.table, c.waits, c.more, wait, at))); diff != "" {
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
	steps := checks.Steps(table, all, false, after, now)
	if len(steps) != checkrun.AtMost || steps[0].Check.RunID != "0" {
		t.Fatalf("%d steps, the first for %s", len(steps), steps[0].Check.RunID)
	}
	for _, s := range steps {
		s.Check.ID = 1
		table = table.With(s.Check)
	}
	if got := checks.Steps(table, all, false, after, now); len(got) > 0 {
		t.Errorf("%v", taken(got))
	}
	if got := checks.Steps(table.Without("acme/app", "0"), all[1:], false, after, now); len(got) != 1 || got[0].Action != checks.Create || got[0].Check.RunID != fmt.Sprint(checkrun.AtMost) {
		t.Errorf("%v", taken(got))
	}
}

// TestOldestFirst: of what is to be renewed, what was written longest ago is first.
func TestOldestFirst(t *testing.T) {
	t.Parallel()
	table := checkrun.Table{}
	var all []checks.Wait
	for i := range 5 {
		all = append(all, waits(fmt.Sprint(i), "", time.Hour))
		table = table.With(checkrun.Check{Repository: "acme/app", RunID: fmt.Sprint(i), ID: 1, Shown: "x", TriedAt: now.Add(-time.Hour - time.Duration(i%3)*time.Minute)})
	}
	var order []string
	for _, s := range checks.Steps(table, all, false, after, now) {
		order = append(order, s.Check.RunID)
	}
	if diff := cmp.Diff([]string{"2", "1", "4", "0", "3"}, order); diff != "" {
		t.Error(diff)
	}
}

// TestSummary is read by people, and the names in it are chosen by workflows.
func TestSummary(t *testing.T) {
	t.Parallel()
	list := []checks.Wait{waits("1", "build `x`\n# loud <img src=x> @all https://evil.example", 5*time.Minute)}
	for i := range 7 {
		list = append(list, waits("1", fmt.Sprint("test ", i), 4*time.Minute))
	}
	other := waits("1", "deploy", 3*time.Minute)
	other.Why = lifecycle.Because(lifecycle.ReasonQuota, "limits.hosts_per_repository allows 2 hosts")
	got := checks.Steps(checkrun.Table{}, append(list, other), false, after, now)[0].Content
	want := "**8 jobs have waited for hosts since May 4 09:55 UTC** (`pool_full`): `pool small is full`\n\nIt gets a host when one is free.\n\n" +
		"- `build  x  # loud <img src=x> @all https://evil.example`\n- `test 0`\n- `test 1`\n- `test 2`\n- `test 3`\n- and 3 more\n\n" +
		"**a job has waited for a host since May 4 09:57 UTC** (`quota`): `limits.hosts_per_repository allows 2 hosts`\n\nIt gets a host when one is free.\n\n- `deploy`\n\n" +
		"Remuda writes this while something waits for hosts, and completes it once nothing does.\n"
	if diff := cmp.Diff(want, got.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	long := waits("1", strings.Repeat("ü", 70_000), time.Hour)
	long.Why.Text = strings.Repeat("ü", 70_000)
	var many []checks.Wait
	for i := range 256 {
		w := long
		w.Why.Text = fmt.Sprint(i) + w.Why.Text
		w.Next = long.Why.Text
		many = append(many, w)
	}
	got = checks.Steps(checkrun.Table{}, many, false, after, now)[0].Content
	if title, summary := len([]rune(got.Title)), len([]rune(got.Summary)); title > 120 || summary > 65_535 || !strings.Contains(got.Summary, "There are 246 other reasons.") {
		t.Errorf("a title of %d characters, a summary of %d", title, summary)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	got := checks.Refused(lifecycle.Because(lifecycle.ReasonNotServed, "no pool has the label %s", "![x](https://evil.example)<b>`\n# big"))
	if got.Conclusion != checkrun.ActionRequired || !strings.HasPrefix(got.Summary, "(`not_served`) `no pool has the label ![x](https://evil.example)<b>  # big`\n\n") || !strings.HasPrefix(got.Title, "no pool has") {
		t.Errorf("%+v", got)
	}
}

// TestMakes: one replica makes a check run, and another only once that has had its time.
func TestMakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open []checkrun.Check
		want bool
	}{
		"there is none":                 {nil, true},
		"there is one of another run":   {[]checkrun.Check{{Repository: "acme/app", RunID: "2", ID: 7}}, true},
		"there is one":                  {[]checkrun.Check{{Repository: "acme/app", RunID: "1", ID: 7}}, false},
		"another replica is making it":  {[]checkrun.Check{{Repository: "acme/app", RunID: "1", TriedAt: now.Add(1 - time.Minute)}}, false},
		"another replica was making it": {[]checkrun.Check{{Repository: "acme/app", RunID: "1", TriedAt: now.Add(-time.Minute)}}, true},
		"GitHub took none":              {[]checkrun.Check{{Repository: "acme/app", RunID: "1", TriedAt: now.Add(1 - time.Hour), Refused: true}}, false},
		"there is one, and it is old":   {[]checkrun.Check{{Repository: "acme/app", RunID: "1", ID: 7, TriedAt: now.Add(-24 * time.Hour)}}, false},
	} {
		if got := checks.Makes(checkrun.Table{Open: c.open}, "acme/app", "1", now); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestAnUpdateIsNotRepeated: the row has what the check run says now, in whatever order the waits are listed.
func TestAnUpdateIsNotRepeated(t *testing.T) {
	t.Parallel()
	first, second := waits("1", "build", 4*time.Minute), waits("1", "test", 4*time.Minute)
	table := checkrun.Table{}.With(checkrun.Check{Repository: "acme/app", RunID: "1", ID: 7, Shown: "of before"})
	steps := checks.Steps(table, []checks.Wait{first, second}, false, after, now)
	if len(steps) != 1 || steps[0].Action != checks.Update {
		t.Fatalf("%v", taken(steps))
	}
	given := []checks.Wait{second, first}
	if again := checks.Steps(table.With(steps[0].Check), given, false, after, now.Add(time.Hour)); len(again) > 0 {
		t.Errorf("again: %v", taken(again))
	}
}

// TestStepsLeaveTheirInput: the list of what waits is the caller's, in its order.
func TestStepsLeaveTheirInput(t *testing.T) {
	t.Parallel()
	given := []checks.Wait{waits("1", "young", time.Minute), waits("1", "old", time.Hour)}
	checks.Steps(checkrun.Table{}, given, false, after, now)
	if given[0].Job != "young" {
		t.Error("the waits are in another order now")
	}
}

// TestNothingIsLeftOut: a summary has as many names and reasons as it may, and does not say that there are more.
func TestNothingIsLeftOut(t *testing.T) {
	t.Parallel()
	var list []checks.Wait
	for i := range 14 {
		w := waits("1", fmt.Sprint("test ", i), 5*time.Minute)
		if i > 4 { // five of the first reason, and one of each of nine others
			w.Why.Text = fmt.Sprint("reason ", i)
		}
		list = append(list, w)
	}
	got := checks.Steps(checkrun.Table{}, list, false, after, now)[0].Content
	if strings.Contains(got.Summary, "more") || strings.Contains(got.Summary, "other reason") || !strings.Contains(got.Summary, "reason 13") || !strings.Contains(got.Summary, "test 4`") {
		t.Error(got.Summary)
	}
	exactly := lifecycle.Because(lifecycle.ReasonNotServed, "%s", strings.Repeat("x", 120))
	if title := checks.Refused(exactly).Title; title != exactly.Text {
		t.Errorf("a title of 120 characters is cut: %s", title)
	}
}
