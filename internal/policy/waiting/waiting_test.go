package waiting_test

import (
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/waiting"
)

var now = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// facts are those of job 7, the third of three that wait for pool ci, which has no host.
func facts(change func(*waiting.Facts)) waiting.Facts {
	f := waiting.Facts{
		Job:   lifecycle.Job{ID: 7, Pool: "ci", Scope: "acme/app", State: lifecycle.JobWaiting, QueuedAt: now.Add(-time.Minute)},
		Place: 3, Listed: 3, Before: 2, Maximum: 4,
	}
	change(&f)
	return f
}

func request(change func(*lifecycle.Request)) *lifecycle.Request {
	q := &lifecycle.Request{Spec: lifecycle.Spec{Count: 1, MinimumCount: 1}, Deadline: now.Add(10 * time.Minute)}
	change(q)
	return q
}

func slot(number, job int64, scope string) slots.Slot {
	return slots.Slot{Number: number, JobID: job, Scope: scope, AssignedAt: now.Add(-30 * time.Second)}
}

func started(s slots.Slot) slots.Slot { s.Started = true; return s }

var usedUp = &budget.Use{Budget: budget.Budget{Repository: "acme/app", Dollars: 10}, Month: "2026-05", Spent: 12}

func TestWhyAJobWaits(t *testing.T) {
	const acme = "acme/app"
	full := []slots.Slot{started(slot(1, 1, acme)), started(slot(2, 2, acme)), started(slot(3, 3, acme)), slot(4, 4, "acme/web")}
	for name, c := range map[string]struct {
		change func(*waiting.Facts)
		code   lifecycle.ReasonCode
		text   string
		next   string
	}{
		"nothing yet": {func(*waiting.Facts) {}, lifecycle.ReasonJobWaiting, "no host was asked for yet", "within seconds"},
		"a paused pool": {
			func(f *waiting.Facts) { f.Pause, f.Open = pause.Pause{Pool: "ci", Since: now, By: "ann"}, full },
			lifecycle.ReasonPoolPaused, "pool ci is paused since 2026-05-04T10:00:00Z by ann", "once the pool is resumed",
		},
		"a budget that is used up": {
			func(f *waiting.Facts) { f.Budget, f.Open = usedUp, full }, lifecycle.ReasonBudgetUsedUp,
			"limits.budgets allows repository acme/app $10.00 in 2026-05, and $12.00 are spent", "from 2026-06-01 on",
		},
		"a budget that was used up after its host was asked for": {
			func(f *waiting.Facts) { f.Budget, f.Open = usedUp, []slots.Slot{slot(5, 7, acme)} }, lifecycle.ReasonRequestOpen, "", "",
		},
		"passed over": {
			func(f *waiting.Facts) { f.Job.NotBefore, f.Job.Passed = now.Add(time.Minute), 2 },
			lifecycle.ReasonPassedOver, "2 times in a row and got no job", "again at 10:01:00Z",
		},
		"passed over until now": {func(f *waiting.Facts) { f.Job.NotBefore, f.Job.Passed = now, 1 }, lifecycle.ReasonJobWaiting, "", ""},
		"a full pool": {
			func(f *waiting.Facts) { f.Open = full }, lifecycle.ReasonPoolFull, "pool ci has 4 of 4 hosts, its maximum, and 3 of them are at work",
			"when one of them is free, after the 2 jobs before it.",
		},
		"a full pool, the next in line": {
			func(f *waiting.Facts) { f.Open, f.Place, f.Before = full, 1, 0 }, lifecycle.ReasonPoolFull, "", "when one of them is free.",
		},
		"a limit": {
			func(f *waiting.Facts) {
				f.Open, f.Request = []slots.Slot{slot(5, 7, acme)}, request(func(q *lifecycle.Request) { q.QuotaReason = "acme has 3 of 3 hosts" })
			}, lifecycle.ReasonQuota, "acme has 3 of 3 hosts", "one of those is free",
		},
		"no capacity": {
			func(f *waiting.Facts) {
				f.Open, f.Request = []slots.Slot{slot(5, 7, acme)}, request(func(q *lifecycle.Request) { q.Shortage = "no spot c5.large" })
			}, lifecycle.ReasonShortage, "short: no spot c5.large", "until 10:10:00Z",
		},
		"GitHub away": {
			func(f *waiting.Facts) { f.Open, f.AwaySince = []slots.Slot{slot(5, 7, acme)}, now },
			lifecycle.ReasonGitHubUnavailable, "GitHub does not answer", "answers again",
		},
		"asked for": {func(f *waiting.Facts) { f.Open = []slots.Slot{slot(5, 7, acme)} }, lifecycle.ReasonRequestOpen, "asked for at 09:59:30Z", "pool or launched"},
		"on its way": {
			func(f *waiting.Facts) {
				f.Open = []slots.Slot{slot(5, 7, acme)}
				f.Request = request(func(q *lifecycle.Request) { q.Taken = []lifecycle.Taken{{InstanceID: "i-1"}} })
			}, lifecycle.ReasonWaitingForRegistration, "host i-1 is on its way", "GitHub gives",
		},
		"all of its hosts are taken, whatever the request has found before": {
			func(f *waiting.Facts) {
				f.Open = []slots.Slot{slot(5, 7, acme)}
				f.Request = request(func(q *lifecycle.Request) {
					q.Taken, q.QuotaReason, q.Shortage = []lifecycle.Taken{{InstanceID: "i-1"}}, "it was full", "it was short"
				})
			}, lifecycle.ReasonWaitingForRegistration, "host i-1 is on its way", "GitHub gives",
		},
		"a request that has taken none": {
			func(f *waiting.Facts) {
				f.Open, f.Request = []slots.Slot{slot(5, 7, acme)}, request(func(*lifecycle.Request) {})
			}, lifecycle.ReasonRequestOpen, "", "pool or launched",
		},
		"far behind, in a line that is not known": {
			func(f *waiting.Facts) { f.Open, f.Place, f.Before = []slots.Slot{slot(5, 8, acme)}, 0, 0 }, lifecycle.ReasonJobWaiting, "", "",
		},
		"a full pool, the second in line": {
			func(f *waiting.Facts) { f.Open, f.Place, f.Before = full, 2, 1 }, lifecycle.ReasonPoolFull, "", "when one of them is free, after the job before it.",
		},
		"listening": {
			func(f *waiting.Facts) {
				s := slot(5, 7, acme)
				s.Runner = "remuda-1-i-1"
				f.Open = []slots.Slot{s}
			}, lifecycle.ReasonWaitingForFirstJob, "runner remuda-1-i-1 listens", "GitHub gives",
		},
		"its host ran another job, and the host of that is free": {
			func(f *waiting.Facts) {
				f.Open = []slots.Slot{started(slot(5, 7, acme)), slot(6, 8, acme)}
				f.Place, f.Before = 1, 0
			}, lifecycle.ReasonRequestOpen, "", "",
		},
		"hosts of another scope":             {func(f *waiting.Facts) { f.Open = []slots.Slot{slot(5, 8, "acme/web")}; f.Before = 0 }, lifecycle.ReasonJobWaiting, "", ""},
		"those before it take the free ones": {func(f *waiting.Facts) { f.Open = []slots.Slot{slot(5, 1, acme), slot(6, 2, acme)} }, lifecycle.ReasonJobWaiting, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := waiting.Why(facts(c.change), now)
			if got.Code != c.code || !strings.Contains(got.Text, c.text) || !strings.Contains(got.Next, c.next) || got.Next == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// What keeps a job or a request says since when it does: the last host of a full pool since it was asked for.
func TestSinceWhen(t *testing.T) {
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	kept := func(change func(*lifecycle.Request)) *lifecycle.Request {
		return request(func(q *lifecycle.Request) { q.QuotaSince, q.ShortSince = ago(3), ago(4); change(q) })
	}
	limit := kept(func(q *lifecycle.Request) { q.QuotaReason = "acme has 3 of 3 hosts" })
	short := kept(func(q *lifecycle.Request) { q.Shortage = "no spot c5.large" })
	paused := pause.Pause{Pool: "ci", Since: ago(7)}
	full := []slots.Slot{started(slot(1, 1, "acme/app")), started(slot(2, 2, "acme/app"))}
	full[1].AssignedAt = ago(9)
	ofJob := func(change func(*waiting.Facts)) waiting.Answer { return waiting.Why(facts(change), now) }
	for name, c := range map[string]struct {
		got  waiting.Answer
		want time.Time
	}{
		"a full pool": {ofJob(func(f *waiting.Facts) { f.Open, f.Maximum = full, 2 }), full[0].AssignedAt},
		"a pause":     {ofJob(func(f *waiting.Facts) { f.Pause = paused }), ago(7)},
		"a limit":     {ofJob(func(f *waiting.Facts) { f.Open, f.Request = []slots.Slot{slot(5, 7, "acme/app")}, limit }), ago(3)},
		"a shortage":  {ofJob(func(f *waiting.Facts) { f.Open, f.Request = []slots.Slot{slot(5, 7, "acme/app")}, short }), ago(4)},
		"GitHub":      {ofJob(func(f *waiting.Facts) { f.Open, f.AwaySince = []slots.Slot{slot(5, 7, "acme/app")}, ago(5) }), ago(5)},
		"a budget":    {ofJob(func(f *waiting.Facts) { f.Budget = &budget.Use{Since: ago(6)} }), ago(6)},
		"nothing":     {ofJob(func(*waiting.Facts) {}), time.Time{}},

		"a pause, of a request":    {waiting.WhyRequest(waiting.RequestFacts{Request: *limit, Pause: paused}), ago(7)},
		"a limit, of a request":    {waiting.WhyRequest(waiting.RequestFacts{Request: *limit}), ago(3)},
		"a shortage, of a request": {waiting.WhyRequest(waiting.RequestFacts{Request: *short}), ago(4)},
		"GitHub, of a request":     {waiting.WhyRequest(waiting.RequestFacts{Request: *kept(func(*lifecycle.Request) {}), AwaySince: ago(5)}), ago(5)},
		"nothing, of a request":    {waiting.WhyRequest(waiting.RequestFacts{Request: *kept(func(*lifecycle.Request) {})}), time.Time{}},
	} {
		if !c.got.Since.Equal(c.want) {
			t.Errorf("%s: %s since %s, want %s", name, c.got.Code, c.got.Since, c.want)
		}
	}
}

func TestTheLine(t *testing.T) {
	for want, f := range map[string]waiting.Facts{
		"":                         {},
		"the only one":             {Place: 1, Listed: 1},
		"the 1st of 2":             {Place: 1, Listed: 2},
		"the 2nd of 3":             {Place: 2, Listed: 3},
		"the 3rd of 3":             {Place: 3, Listed: 3},
		"the 11th of 12":           {Place: 11, Listed: 12},
		"the 13th of 14":           {Place: 13, Listed: 14},
		"the 14th of 14":           {Place: 14, Listed: 14},
		"the 23rd of more than 40": {Place: 23, Listed: 40, More: true},
		"the 1st of more than 1":   {Place: 1, Listed: 1, More: true},
		"behind 1000 others":       {Listed: 1000, More: true},
	} {
		if got := f.Line(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWhyARequestWaits(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*waiting.RequestFacts)
		code   lifecycle.ReasonCode
		text   string
		next   string
	}{
		"nothing yet": {func(*waiting.RequestFacts) {}, lifecycle.ReasonRequestOpen, "1 of 2 hosts are taken", "launched until 10:10:00Z"},
		"a paused pool": {
			func(f *waiting.RequestFacts) {
				f.Pause, f.Request.QuotaReason = pause.Pause{Pool: "default", Since: now, By: "ann"}, "pool default is paused"
			},
			lifecycle.ReasonPoolPaused, "pool default is paused since 2026-05-04T10:00:00Z by ann", "once the pool is resumed",
		},
		"a limit":     {func(f *waiting.RequestFacts) { f.Request.QuotaReason = "acme has 3 of 3 hosts" }, lifecycle.ReasonQuota, "acme has 3 of 3 hosts", "once there is room"},
		"no capacity": {func(f *waiting.RequestFacts) { f.Request.Shortage = "no spot c5.large" }, lifecycle.ReasonShortage, "short: no spot c5.large", "again until 10:10:00Z"},
		"GitHub away": {func(f *waiting.RequestFacts) { f.AwaySince = now }, lifecycle.ReasonGitHubUnavailable, "GitHub does not answer", "answers again"},
		"both are on their way": {
			func(f *waiting.RequestFacts) {
				f.Request.Taken = append(f.Request.Taken, lifecycle.Taken{InstanceID: "i-2"})
			}, lifecycle.ReasonWaitingForRegistration, "all 2 hosts are taken, and some boot or register", "until 10:10:00Z",
		},
		"its one host is on its way": {
			func(f *waiting.RequestFacts) {
				f.Request.Spec.Count, f.Request.QuotaReason, f.Request.Shortage = 1, "it was full", "it was short"
				f.Pause = pause.Pause{Pool: "default", Since: now}
			},
			lifecycle.ReasonWaitingForRegistration, "its host is taken, and boots or registers", "until 10:10:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := waiting.RequestFacts{Request: lifecycle.Request{
				Spec: lifecycle.Spec{Count: 2, MinimumCount: 1}, Taken: []lifecycle.Taken{{InstanceID: "i-1"}}, Deadline: now.Add(10 * time.Minute),
			}}
			c.change(&f)
			got := waiting.WhyRequest(f)
			if got.Code != c.code || !strings.Contains(got.Text, c.text) || !strings.Contains(got.Next, c.next) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
