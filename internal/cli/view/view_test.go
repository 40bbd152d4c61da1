package view_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/cli/table"
	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// now is the time of every view here.
var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// in is a time as seen from now.
func in(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(now.Add(d)) }

const (
	created    = remudav1.State_STATE_CREATED
	running    = remudav1.State_STATE_RUNNING
	idle       = remudav1.State_STATE_IDLE
	claimed    = remudav1.State_STATE_CLAIMED
	terminated = remudav1.State_STATE_TERMINATED
)

// fleet has a host of each kind.
func fleet() []*remudav1.Instance {
	alive := func(h *remudav1.Instance) *remudav1.Instance {
		h.Pool, h.Healthy, h.HeartbeatTime = "default", true, in(-5*time.Second)
		if h.UpdateTime == nil {
			h.UpdateTime = in(-4 * time.Minute)
		}
		return h
	}
	return []*remudav1.Instance{
		{InstanceId: "i-boots", Pool: "default", State: created, Repository: "acme/shop", RunId: "41", RunAttempt: 1, CreateTime: in(-30 * time.Second), UpdateTime: in(-time.Second), Threshold: in(9 * time.Minute)},
		alive(&remudav1.Instance{InstanceId: "i-works", State: running, Repository: "acme/shop", RunId: "41", RunAttempt: 1, Busy: true, Job: &remudav1.WorkflowJob{JobId: 9, Name: "build", Repository: "acme/shop", RunId: "41", RunAttempt: 1}, Threshold: in(118 * time.Minute)}),
		alive(&remudav1.Instance{InstanceId: "i-again", State: running, Repository: "acme/app", RunId: "7", RunAttempt: 2, Threshold: in(time.Hour), InterruptionTime: in(2 * time.Minute)}),
		alive(&remudav1.Instance{InstanceId: "i-kept", State: running, Repository: "acme/app", RunId: "7", RunAttempt: 2, Threshold: in(time.Minute), HoldTime: in(2 * time.Hour), Retiring: true}),
		alive(&remudav1.Instance{InstanceId: "i-taken", State: claimed, Repository: "acme/app", RunId: "8", RunAttempt: 1, Threshold: in(100 * time.Second)}),
		alive(&remudav1.Instance{InstanceId: "i-dirty", State: idle, Assignment: 4, Repository: "acme/app", Threshold: in(-3 * time.Second)}),
		alive(&remudav1.Instance{InstanceId: "i-warm", State: idle, Assignment: 1, Threshold: in(9 * time.Minute)}),
		alive(&remudav1.Instance{InstanceId: "i-pool", State: idle, PooledTime: in(-70 * time.Second), Repository: "acme/app", Threshold: in(4 * time.Minute)}),
		alive(&remudav1.Instance{InstanceId: "i-hot", State: idle, PooledTime: in(-26 * time.Hour), Hot: true, Threshold: in(50 * time.Hour), HoldTime: in(-time.Hour)}),
		alive(&remudav1.Instance{InstanceId: "i-rests", State: idle, PooledTime: in(-time.Hour), RestingTime: in(-time.Minute), Threshold: in(time.Hour)}),
		{InstanceId: "i-resets", Pool: "default", State: idle, ResetTime: in(-2 * time.Minute), Threshold: in(13 * time.Minute), UpdateTime: in(-time.Minute)},
		{InstanceId: "i-stops", Pool: "default", State: idle, PooledTime: in(-time.Hour), StopTime: in(-20 * time.Minute), Threshold: in(23 * time.Hour)},
		{InstanceId: "i-lost", Pool: "default", State: idle, PooledTime: in(-time.Hour), HeartbeatTime: in(-time.Hour), OrphanTime: in(-time.Minute), Threshold: in(time.Second)},
		{InstanceId: "i-over", Pool: "default", State: terminated, Repository: "acme/app", UpdateTime: in(-time.Hour), Threshold: in(time.Hour), Retiring: true},
		{InstanceId: "i-slot", Pool: "builds", State: running, Repository: "acme/app", RunId: "turn:builds:3", RunAttempt: 1, Healthy: true, HeartbeatTime: in(0), UpdateTime: in(time.Second), Threshold: in(time.Hour)},
	}
}

func text(t *testing.T, of table.Table) string {
	t.Helper()
	var b strings.Builder
	if err := of.Write(&b, false); err != nil {
		t.Fatal(err)
	}
	return "\n" + b.String()
}

func compare(t *testing.T, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHosts(t *testing.T) {
	const want = `
HOST      STATE                    POOL     REPOSITORY  RUN            JOB    BUSY  SINCE  NEXT
i-slot    running                  builds   acme/app    turn:builds:3  -      no    0s     maximum runtime in 1h
i-boots   created                  default  acme/shop   41             -      no    30s    creation timeout in 9m
i-again   running,interrupted      default  acme/app    7 #2           -      no    4m     interruption in 2m
i-kept    running,held,retiring    default  acme/app    7 #2           -      no    4m     hold end in 2h
i-works   running                  default  acme/shop   41             build  yes   4m     maximum runtime in 1h58m
i-taken   claimed                  default  acme/app    8              -      no    4m     claim timeout in 2m
i-warm    releasing                default  -           -              -      no    4m     creation timeout in 9m
i-dirty   releasing                default  acme/app    -              -      no    4m     release timeout 3s ago
i-lost    pooled,orphan,unhealthy  default  -           -              -      no    1h     idle end in 1s
i-pool    pooled                   default  acme/app    -              -      no    1m     idle end in 4m
i-hot     hot                      default  -           -              -      no    1d2h   idle end in 2d2h
i-rests   resting                  default  -           -              -      no    1h     idle end in 1h
i-stops   stopped                  default  -           -              -      no    20m    stopped end in 23h
i-resets  resetting                default  -           -              -      no    2m     reset timeout in 13m
i-over    ended                    default  acme/app    -              -      no    1h     -
`
	hosts := view.Filter{}.Apply(fleet(), now)
	compare(t, want, text(t, view.Hosts(hosts, now, false)))
}

// What is next of a held host is the end of its hold, however near its deadline is.
func TestNextOfAHeldHost(t *testing.T) {
	for hold, want := range map[time.Duration]string{time.Hour: "hold end in 1h", 3 * time.Hour: "hold end in 3h", -time.Second: "maximum runtime in 2h"} {
		host := &remudav1.Instance{InstanceId: "i-held", State: running, Threshold: in(2 * time.Hour), HoldTime: in(hold)}
		if got := text(t, view.Hosts([]*remudav1.Instance{host}, now, false)); !strings.Contains(got, want) {
			t.Errorf("held for %s: the table lacks %q:\n%s", hold, want, got)
		}
	}
}

func TestHostsWide(t *testing.T) {
	host := &remudav1.Instance{
		InstanceId: "i-works", Pool: "default", State: running, Repository: "acme/shop", RunId: "41", Busy: true, Threshold: in(time.Hour), UpdateTime: in(-time.Minute),
		InstanceType: "c5.large", ResourceClass: "large", UsageClass: remudav1.UsageClass_USAGE_CLASS_ON_DEMAND, Zone: "eu-west-1a", Assignment: 3,
		HeartbeatTime: in(-5 * time.Second), Healthy: true, Labels: []string{"gpu", "big"}, Reason: "registered for run 41", Retiring: true, RetiringReason: "drained by ann: a new rack",
		Job:    &remudav1.WorkflowJob{JobId: 7, Name: "build", Repository: "acme/web", RunId: "42", RunAttempt: 2},
		Caches: []*remudav1.HostCache{{Key: "00000000000000aa", Name: "go", Bytes: 1 << 30}, {Key: "00000000000000bb", Bytes: 200 << 20}},
	}
	const want = `
HOST     STATE             POOL     REPOSITORY  RUN    JOB    BUSY  SINCE                 NEXT                                  TYPE      CLASS  USAGE      ZONE        ASSIGNMENT  HEARTBEAT             LABELS   CACHES                        REASON
i-works  running,retiring  default  acme/web    42 #2  build  yes   2026-01-01T11:59:00Z  maximum runtime 2026-01-01T13:00:00Z  c5.large  large  on-demand  eu-west-1a  3           2026-01-01T11:59:55Z  gpu,big  go 1.0 GiB, 00000000 200 MiB  registered for run 41; retiring: drained by ann: a new rack
`
	compare(t, want, text(t, view.Hosts([]*remudav1.Instance{host}, now, true)))
}

// TestCachesOfAHost: each by its name or by the start of its key, the largest first, and what is beyond three as one.
func TestCachesOfAHost(t *testing.T) {
	held := func(key, name string, bytes uint64) *remudav1.HostCache {
		return &remudav1.HostCache{Key: key, Name: name, Bytes: bytes}
	}
	small, npm, gone, goCache := held("01", "tools", 300), held("02", "npm", 17<<20), held("9f3c5a7712345678", "", 900<<10), held("04", "go", 349<<20)
	for want, caches := range map[string][]*remudav1.HostCache{
		"-":                      nil,
		"go 349 MiB":             {goCache},
		"go 349 MiB, npm 17 MiB": {npm, goCache},
		"9f3c5a77 900 KiB":       {gone},
		"go 349 MiB, npm 17 MiB, 9f3c5a77 900 KiB":                {gone, npm, goCache},
		"go 349 MiB, npm 17 MiB, 9f3c5a77 900 KiB, 1 more, 1 KiB": {small, gone, npm, goCache},
		"big 2.0 GiB, go 349 MiB, npm 17 MiB, 2 more, 901 KiB":    {small, gone, npm, goCache, held("05", "big", 2<<30)},
		"apt 5 MiB, go 5 MiB, npm 5 MiB, 1 more, 5 MiB":           {held("4", "tools", 5<<20), held("3", "npm", 5<<20), held("2", "go", 5<<20), held("1", "apt", 5<<20)},
	} {
		host := &remudav1.Instance{InstanceId: "i-1", State: running, Labels: []string{"gpu"}, Reason: "why", Caches: caches, CacheBytes: 1 << 40}
		shown := strings.Join(strings.Fields(text(t, view.Hosts([]*remudav1.Instance{host}, now, true))), " ")
		if want := "gpu " + want + " why"; !strings.HasSuffix(shown, want) {
			t.Errorf("the row does not end in %q:\n%s", want, shown)
		}
	}
}

func TestWaitsWide(t *testing.T) {
	wait := &remudav1.Wait{
		Pool: "default", Repository: "acme/shop", RunId: "41", RequestId: "asked", BeginTime: in(-time.Hour), MissingCount: 2,
		ReasonCode: "quota", Reason: "acme has 3 of 3 hosts", ReasonTime: in(-time.Minute), Next: "It gets hosts once there is room.",
	}
	const want = `
WAITS                 POOL     REPOSITORY  RUN  JOB  MISSING  WHY    REASON                 WHY SINCE             LINE  NEXT                               REQUEST
2026-01-01T11:00:00Z  default  acme/shop   41   -    2        quota  acme has 3 of 3 hosts  2026-01-01T11:59:00Z  -     It gets hosts once there is room.  asked
`
	compare(t, want, text(t, view.Waits([]*remudav1.Wait{wait}, now, true)))
}

func TestFilter(t *testing.T) {
	tests := map[string]struct {
		filter view.Filter
		want   string
	}{
		"pool":                        {view.Filter{Pool: "builds"}, "i-slot"},
		"repository":                  {view.Filter{Repository: "Acme/Shop"}, "i-boots i-works"},
		"owner":                       {view.Filter{Repository: "acme", States: []string{"pooled"}}, "i-pool"},
		"run":                         {view.Filter{RunID: "7"}, "i-again i-kept"},
		"slot":                        {view.Filter{RunID: "turn:builds:3"}, "i-slot"},
		"pooled, hot and resting too": {view.Filter{States: []string{"pooled"}}, "i-lost i-pool i-hot i-rests"},
		"hot":                         {view.Filter{States: []string{"hot"}}, "i-hot"},
		"held":                        {view.Filter{States: []string{"held"}}, "i-kept"},
		"state or mark":               {view.Filter{States: []string{"interrupted", "claimed"}}, "i-again i-taken"},
		"an ended host has no mark":   {view.Filter{States: []string{"retiring"}}, "i-kept"},
		"all must hold":               {view.Filter{Pool: "builds", States: []string{"pooled"}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var ids []string
			for _, h := range test.filter.Apply(fleet(), now) {
				ids = append(ids, h.GetInstanceId())
			}
			compare(t, test.want, strings.Join(ids, " "))
		})
	}
}

// What is on a terminal in color: red needs a person, yellow is on its way out.
func TestStateColors(t *testing.T) {
	want := map[string]table.Style{
		"running": table.Good, "pooled": table.Good, "hot": table.Good, "resting": table.Good, "stopped": table.Good, "created": table.Plain, "claimed": table.Plain, "releasing": table.Plain,
		"ended": table.Faint, "running,interrupted": table.Warn, "running,held,retiring": table.Warn, "pooled,orphan,unhealthy": table.Bad,
	}
	for _, row := range view.Hosts(fleet(), now, false).Rows {
		if style := want[row[1].Text]; row[1].Style != style {
			t.Errorf("%s is %q, want %q", row[1].Text, row[1].Style, style)
		}
	}
}

func TestRuns(t *testing.T) {
	const want = `
REPOSITORY  RUN            ATTEMPT  READY  BUSY  POOL     SINCE  NEXT
acme/app    7              2        2/2    0     default  4m     interruption in 2m
acme/app    8              1        0/1    0     default  4m     claim timeout in 2m
acme/app    turn:builds:3  1        1/1    0     builds   0s     maximum runtime in 1h
acme/shop   41             1        1/2    1     default  4m     creation timeout in 9m
`
	compare(t, want, text(t, view.Runs(view.RunsOf(fleet(), now), now, false)))
	wide := text(t, view.Runs(view.RunsOf(fleet(), now), now, true))
	if !strings.Contains(wide, "2026-01-01T11:56:00Z  interruption 2026-01-01T12:02:00Z      i-again,i-kept\n") {
		t.Errorf("wide:%s", wide)
	}
}

func TestPools(t *testing.T) {
	pools := []*remudav1.Pool{
		{Name: "builds", ResourceClasses: []string{"large", "xlarge"}, Maximum: 20, HasMaximum: true, UsageClasses: []remudav1.UsageClass{1, 2}, AllowedInstanceTypes: []string{"c5.*"},
			Reuse: remudav1.Reuse_REUSE_SAME_REPOSITORY, MaxRuntime: durationpb.New(2 * time.Hour), PooledCount: 3, FreshCount: 1, WantedFreshCount: 2, HotCount: 2, StoppedCount: 1, FreshStoppedCount: 1, WantedFreshStoppedCount: 2,
			Counts: []*remudav1.StateCount{{State: running, Count: 4}, {State: created, Count: 1}, {State: claimed, Count: 2}, {State: idle, Count: 6}}},
		{Name: "default", ResourceClasses: []string{"large"}, Pause: &remudav1.Pause{BeginTime: in(-5 * time.Minute), Operator: "alice", Reason: "a new image"}, MaxRuntime: durationpb.New(time.Hour)},
	}
	const want = `
POOL     RUNNING  ARRIVING  RELEASING  POOLED  HOT  FRESH  STOPPED  MAXIMUM  PAUSED
builds   4        3         2          3       2    1/2    1 (1/2)  20       no
default  0        0         0          0       0    0      0        any      5m
`
	compare(t, want, text(t, view.Pools(pools, now, false)))
	if wide := text(t, view.Pools(pools, now, true)); !strings.Contains(wide, "large,xlarge  on-demand,spot  c5.*   same repository  false       2h") ||
		!strings.Contains(wide, "alice      a new image\n") {
		t.Errorf("wide:%s", wide)
	}
}

func TestEvents(t *testing.T) {
	events := []*remudav1.Event{
		{EventTime: in(0), InstanceId: "i-0b22a22eec53b9321", Action: remudav1.Action_ACTION_RELEASE_CLOCK, Repository: "acme/shop", RunId: "41", Reason: "no job runs"},
		{EventTime: in(time.Second), Repository: "acme/tools", RunId: "turn:small:2", Reason: "asked\nfor 2"},
		{EventTime: in(time.Minute), InstanceId: "i-1", Action: remudav1.Action_ACTION_POOL, Reason: "clean"},
	}
	lines := []string{view.EventHead(false)}
	for _, e := range events {
		lines = append(lines, view.Event(e, time.FixedZone("", 3600), false))
	}
	const want = `TIME            HOST                 ACTION            RUN                               REASON
01-01 13:00:00  i-0b22a22eec53b9321  release clock     acme/shop 41                      no job runs
01-01 13:00:01  -                    request           acme/tools turn:small:2           asked for 2
01-01 13:01:00  i-1                  pool              -                                 clean`
	compare(t, want, strings.Join(lines, "\n"))
	if wide := view.Event(events[2], time.Local, true); !strings.HasPrefix(wide, "2026-01-01T12:01:00Z  i-1 ") {
		t.Errorf("wide: %s", wide)
	}
}

func TestRefresh(t *testing.T) {
	const resources = `
KIND   NAME              CHANGE   DETAIL
table  remuda-instances  created  it was missing
`
	compare(t, resources, text(t, view.Resources([]*remudav1.Resource{
		{Kind: "table", Name: "remuda-instances", Change: remudav1.ResourceChange_RESOURCE_CHANGE_CREATED, Detail: "it was missing"},
	})))
	const decisions = `
HOST  ACTION     SWEEP  REASON
i-3   terminate  due    idle until its threshold
i-1   keep       due    busy
i-2   keep       due    busy
`
	compare(t, decisions, text(t, view.Decisions([]*remudav1.Decision{
		{InstanceId: "i-2", Action: remudav1.Action_ACTION_KEEP, Sweep: "due", Reason: "busy"},
		{InstanceId: "i-1", Action: remudav1.Action_ACTION_KEEP, Sweep: "due", Reason: "busy"},
		{InstanceId: "i-3", Action: remudav1.Action_ACTION_TERMINATE, Sweep: "due", Reason: "idle until its threshold"},
	})))
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 400 * time.Millisecond: "0s", 59400 * time.Millisecond: "59s", 59600 * time.Millisecond: "1m", 4 * time.Minute: "4m", 59*time.Minute + 40*time.Second: "1h",
		118 * time.Minute: "1h58m", 2*time.Hour - time.Second: "2h", 24 * time.Hour: "1d", 76 * time.Hour: "3d4h", -time.Minute: "1m", 23*time.Hour + 59*time.Minute + 50*time.Second: "1d",
	} {
		if got := view.Span(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}

// What a sentence quotes of a workflow or of an agent moves no cursor, sets no title and turns no text around.
func TestWhyObeysNoText(t *testing.T) {
	resp := &remudav1.ExplainRunResponse{
		Sentences: []string{"Job 1 names the label a\x1b]0;owned\x07b.", "one\r\ntwo \u009b2J \u202egnp.exe"},
		Events:    []*remudav1.Event{{Reason: "c\x1b[31md"}},
	}
	text := view.Why(resp, true)
	for _, bad := range "\x1b\x07\r\u009b\u202e" {
		if strings.ContainsRune(text, bad) {
			t.Errorf("%q is printed in %q", bad, text)
		}
	}
	if lines := strings.Count(text, "\n"); lines != 5 {
		t.Errorf("%d lines: %q", lines, text)
	}
}

func TestServices(t *testing.T) {
	services := []*remudav1.Service{
		{Name: "render", RunningCount: 1, DesiredCount: 2, QueuedCount: 1000, MoreQueued: true, BusyCount: 1, CheckTime: in(-30 * time.Second),
			Reason: "1000 jobs wait", Cluster: "main", EcsService: "render-runners", Region: "eu-west-1", Workers: []*remudav1.WorkerVersion{{OnlineCount: 1}, {OnlineCount: 1, OfflineCount: 1}}},
		{Name: "new"},
	}
	for wide, want := range map[bool][]string{
		false: {"render 1/2 1000+ 1 30s 1000 jobs wait", "new 0/0 0 0 - -"},
		true:  {"render 1/2 1000+ 1 2026-01-01T11:59:30Z 1000 jobs wait main render-runners eu-west-1 0 2/3", "new 0/0 0 0 - - - - - 0 0/0"},
	} {
		got := view.Services(services, now, wide)
		for i, row := range got.Rows {
			var texts []string
			for _, c := range row {
				texts = append(texts, c.Shown())
			}
			if line := strings.Join(texts, " "); line != want[i] {
				t.Errorf("wide %t: %q, want %q", wide, line, want[i])
			}
		}
		if got.Rows[0][1].Style != table.Warn || got.Rows[1][1].Style != table.Plain {
			t.Error("fewer runners than there should be are no warning, or as many are one")
		}
	}
}

func TestBudgets(t *testing.T) {
	got := view.Budgets(&remudav1.ListBudgetsResponse{Budgets: []*remudav1.Budget{
		{Owner: "acme", DollarsPerMonth: 1000, DollarsSpent: 999.99, State: remudav1.BudgetState_BUDGET_STATE_NEAR},
		{Repository: "acme/shop", DollarsPerMonth: 0.5, DollarsSpent: 1, State: remudav1.BudgetState_BUDGET_STATE_USED_UP},
	}})
	for i, want := range []string{"acme 1000.00 999.99 99% near", "acme/shop 0.50 1.00 200% used up"} {
		var texts []string
		for _, c := range got.Rows[i] {
			texts = append(texts, c.Shown())
		}
		if shown := strings.Join(texts, " "); shown != want {
			t.Errorf("%q, want %q", shown, want)
		}
	}
}

// shownLines are the lines of a table, without the space between its columns.
func shownLines(got table.Table) []string {
	lines := []string{strings.Join(got.Head, " ")}
	for _, row := range got.Rows {
		var texts []string
		for _, c := range row {
			texts = append(texts, c.Shown())
		}
		lines = append(lines, strings.Join(texts, " "))
	}
	return lines
}

// The calls to AWS have a column and rows of their own, by day the column of each day, and leave the sums of machines as they are.
func TestCostsOfCalls(t *testing.T) {
	row := &remudav1.Cost{Day: "2026-11-26", Hosts: 1, Busy: durationpb.New(time.Hour), Dollars: 2, JobId: 7, JobName: "=x"}
	report := func(days ...string) *remudav1.GetCostResponse {
		r := &remudav1.GetCostResponse{Rows: []*remudav1.Cost{row}, Total: row}
		for _, day := range days {
			r.Calls = append(r.Calls, &remudav1.CallCost{Day: day, Caller: "controld", Service: "dynamodb", Requests: 10, ReadUnits: 1.5, WriteUnits: 3, Dollars: 0.5},
				&remudav1.CallCost{Day: day, Caller: "agents", Service: "dynamodb", Requests: 20, Dollars: 1, Estimated: true, Rough: true})
			r.CallDollars += 1.5
		}
		return r
	}
	for name, tt := range map[string]struct {
		by     remudav1.CostBy
		report *remudav1.GetCostResponse
		want   []string
	}{
		"by pool": {remudav1.CostBy_COST_BY_POOL, report(""), []string{
			"POOL DOLLARS HOSTS BOOT BUSY CLEAN IDLE CALLS", "- 2.00 1 0s 1h 0s 0s -", "(calls of controld: dynamodb) - - - - - - 0.5000", "(calls of agents: dynamodb) - - - - - - 1.00",
			"total 2.00 1 0s 1h 0s 0s 1.50",
		}},
		"by day": {remudav1.CostBy_COST_BY_DAY, report("2026-11-25", "2026-11-26", "2026-11-27"), []string{
			"DAY DOLLARS HOSTS BOOT BUSY CLEAN IDLE CALLS", "2026-11-25 - - - - - - 1.50", "2026-11-26 2.00 1 0s 1h 0s 0s 1.50", "2026-11-27 - - - - - - 1.50",
			"total 2.00 1 0s 1h 0s 0s 4.50",
		}},
	} {
		if got := shownLines(view.Costs(tt.by, tt.report)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	notes := strings.Join(view.CostNotes(report("")), "\n")
	if !strings.Contains(notes, "agents are estimated") || !strings.Contains(notes, "cost.call_prices") {
		t.Errorf("the notes are %q", notes)
	}
	alone := report("")
	alone.Calls = alone.GetCalls()[:1]
	if notes := view.CostNotes(alone); !slices.Equal(notes, []string{"Calls are not in DOLLARS."}) {
		t.Errorf("of calls of controld alone the notes are %q", notes)
	}
	var csv strings.Builder
	err := view.WriteCosts(&csv, report("2026-11-26"))
	lines := strings.Split(csv.String(), "\n")
	want := []string{
		"2026-11-26,,,,,,,0,7,'=x,1,0.000,3600.000,0.000,0.000,0.000,2.000000,,,,,,,", "2026-11-26,,,,,,,,,,,,,,,,,controld,dynamodb,10,1.5,3,0.500000,false",
		"2026-11-26,,,,,,,,,,,,,,,,,agents,dynamodb,20,0.0,0,1.000000,true", "",
	}
	if err != nil || !slices.Equal(lines[1:], want) || strings.Count(lines[0], ",") != strings.Count(lines[1], ",") {
		t.Errorf("%v: %q, want %q", err, lines, want)
	}
}

func TestCosts(t *testing.T) {
	span := func(d time.Duration) *durationpb.Duration { return durationpb.New(d) }
	shop := &remudav1.Cost{Day: "2026-11-26", Repository: "acme/shop", Workflow: "=CI", RunId: "41", RunAttempt: 2, Hosts: 3, Boot: span(time.Minute), Busy: span(2 * time.Hour), Dollars: 0.1632}
	idle := &remudav1.Cost{Day: "2026-11-27", Idle: span(30 * time.Hour), Clean: span(5 * time.Second), Unpriced: span(30*time.Hour + 5*time.Second)}
	total := &remudav1.Cost{Hosts: 3, Boot: span(time.Minute), Busy: span(2 * time.Hour), Idle: span(30 * time.Hour), Clean: span(5 * time.Second), Dollars: 12.345, Unpriced: span(30 * time.Hour)}
	report := &remudav1.GetCostResponse{Rows: []*remudav1.Cost{shop, idle}, Total: total, MoreRows: 4, UnpricedTypes: []string{"a", "b", "c", "d", "e", "f", "g"}, Rough: true}
	for kind, want := range map[string][]string{
		"repository": {"REPOSITORY DOLLARS HOSTS BOOT BUSY CLEAN IDLE", "acme/shop 0.1632 3 1m 2h 0s 0s", "(the pool) - 0 0s 0s 5s 1d6h", "total 12.35 3 1m 2h 5s 1d6h"},
		"owner":      {"OWNER DOLLARS HOSTS BOOT BUSY CLEAN IDLE"},
		"workflow":   {"REPOSITORY WORKFLOW DOLLARS HOSTS BOOT BUSY CLEAN IDLE", "acme/shop =CI 0.1632 3 1m 2h 0s 0s", "(the pool) - - 0 0s 0s 5s 1d6h"},
		"run":        {"RUN ATTEMPT WORKFLOW DOLLARS HOSTS BOOT BUSY CLEAN IDLE", "acme/shop/41 2 =CI 0.1632 3 1m 2h 0s 0s", "(the pool) - - - 0 0s 0s 5s 1d6h"},
		"job":        {"RUN ATTEMPT WORKFLOW JOB JOB ID DOLLARS HOSTS BOOT BUSY CLEAN IDLE", "acme/shop/41 2 =CI - - 0.1632 3 1m 2h 0s 0s", "(the pool) - - - - - 0 0s 0s 5s 1d6h"},
		"pool":       {"POOL DOLLARS HOSTS BOOT BUSY CLEAN IDLE"}, "day": {"DAY DOLLARS HOSTS BOOT BUSY CLEAN IDLE"}, "type": {"TYPE USAGE DOLLARS HOSTS BOOT BUSY CLEAN IDLE"},
	} {
		by, ok := view.CostBy(kind)
		if !ok {
			t.Errorf("%s is no kind of rows", kind)
		}
		lines := shownLines(view.Costs(by, report))
		if len(lines) != 4 || !slices.Equal(lines[:len(want)], want) {
			t.Errorf("by %s: %q, want %q", kind, lines, want)
		}
	}
	if got := view.Costs(remudav1.CostBy_COST_BY_POOL, &remudav1.GetCostResponse{Total: &remudav1.Cost{}}); len(got.Rows) != 0 {
		t.Errorf("nothing was used: %v", got.Rows)
	}
	unknown := &remudav1.GetCostResponse{Rows: []*remudav1.Cost{{Repository: "acme/shop", Hosts: 1}}, Total: &remudav1.Cost{}}
	if got := shownLines(view.Costs(remudav1.CostBy_COST_BY_RUN, unknown)); len(got) < 2 || !strings.HasPrefix(got[1], "acme/shop/- - - ") {
		t.Errorf("a host whose run is not known: %q", got)
	}
	notes := strings.Join(view.CostNotes(report), "\n")
	for _, part := range []string{"4 more rows", "a, b, c, d, e and 2 others", "rough"} {
		if !strings.Contains(notes, part) {
			t.Errorf("the notes %q do not say %q", notes, part)
		}
	}
	var csv strings.Builder
	if err := view.WriteCosts(&csv, report); err != nil || !strings.Contains(csv.String(), ",acme/shop,'=CI,41,2,,,3,60.000,7200.000,0.000,0.000,0.000,0.163200,,,,,,,\n") {
		t.Errorf("%v:\n%s", err, &csv)
	}
}

// What needs a hand is marked: a clock that is off, a certificate that ends, a file that counts only after a restart, and one that cannot be read.
func TestStatus(t *testing.T) {
	replicas := []*remudav1.Replica{
		{Name: "a", Version: "1.2.3", StartTime: in(-time.Hour), ClockOffset: durationpb.New(500 * time.Millisecond), Answering: true},
		{Name: "b", ClockOffset: durationpb.New(-30 * time.Second)}, {Name: "c", Version: "1.3.0", ClockOffset: durationpb.New(5 * time.Second)},
	}
	const wantReplicas = `
CONTROLD  VERSION  RUNS FOR  CLOCK      ANSWERS
a         1.2.3    1h        right      yes
b         unknown  -         30s ahead  no
c         1.3.0    -         5s behind  no
`
	compare(t, wantReplicas, text(t, view.Replicas(replicas, now)))
	if view.ClockIsOff(replicas[0]) || !view.ClockIsOff(replicas[1]) || !view.ClockIsOff(replicas[2]) {
		t.Error("a clock is judged otherwise")
	}
	day := 24 * time.Hour
	credentials := []*remudav1.Credential{
		{Setting: "grpc.tls.cert_file", Source: "/tls.crt", ChangeTime: in(-day), Reloaded: true, Subject: "CN=controld", ExpireTime: in(90 * day)},
		{Setting: "grpc.tls.client_ca_file", Source: "/ca.pem", ChangeTime: in(-2 * day), ExpireTime: in(13 * day)},
		{Setting: "github.ca_file", Source: "/hub.pem", ExpireTime: in(0)},
		{Setting: "github.apps[0].private_key_file", Source: "/app.pem", ChangeTime: in(-time.Minute), Outdated: true},
		{Setting: "webhooks.secret_env", Source: "$SECRET"},
		{Setting: "page.token_file", Source: "/tokens", Reloaded: true, Problem: "/tokens does not exist"},
	}
	const wantCredentials = `
SETTING                          FROM      CHANGED  EXPIRES              A CHANGE COUNTS  STATE
grpc.tls.cert_file               /tls.crt  1d ago   2026-04-01 (in 90d)  within a minute  good
grpc.tls.client_ca_file          /ca.pem   2d ago   2026-01-14 (in 13d)  after a restart  expires soon: renew it
github.ca_file                   /hub.pem  -        2026-01-01 (0s ago)  after a restart  expired: renew it
github.apps[0].private_key_file  /app.pem  1m ago   -                    after a restart  changed since controld has read it: restart controld
webhooks.secret_env              $SECRET   -        -                    after a restart  good
page.token_file                  /tokens   -        -                    within a minute  /tokens does not exist
`
	compare(t, wantCredentials, text(t, view.Credentials(credentials, now)))
	const detail = "/tls.crt, CN=controld, valid until 2026-04-01 (in 90d), changed 1d ago, a change counts within a minute"
	if got := view.CredentialDetail(credentials[0], now); got != detail {
		t.Errorf("got %q, want %q", got, detail)
	}
	hold := &remudav1.FleetHold{UntilTime: in(time.Hour), Operator: "CN=ops", Reason: "a look\nat it"}
	if got, want := view.Hold(hold), "No host is ended until 2026-01-01T13:00:00Z, by order of CN=ops: a look."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
