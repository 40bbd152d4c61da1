package page

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

var begin = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// changed is an event of a host some minutes after begin.
func changed(minute int, id string, action remudav1.Action, from, to remudav1.State) *remudav1.Event {
	return &remudav1.Event{EventTime: timestamppb.New(begin.Add(time.Duration(minute) * time.Minute)), InstanceId: id, Action: action, FromState: from, ToState: to}
}

const (
	none    = remudav1.State_STATE_UNSPECIFIED
	created = remudav1.State_STATE_CREATED
	claimed = remudav1.State_STATE_CLAIMED
	running = remudav1.State_STATE_RUNNING
	idle    = remudav1.State_STATE_IDLE
	ended   = remudav1.State_STATE_TERMINATED
)

// on is an event of a job of a run, or of its request, which began to wait some minutes after begin.
func on(minute, since int, action remudav1.Action, requestID string, jobID int64) *remudav1.Event {
	e := changed(minute, "", action, none, none)
	e.RequestId, e.JobId, e.BeginTime = requestID, jobID, timestamppb.New(begin.Add(time.Duration(since)*time.Minute))
	return e
}

// now is a pool with so many hosts that are idle, and so many that run.
func now(idles, runs int32) []*remudav1.Pool {
	return []*remudav1.Pool{{Counts: []*remudav1.StateCount{{State: idle, Count: idles}, {State: running, Count: runs}}}}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	h := historyOf([]*remudav1.Event{
		changed(5, "i-old", remudav1.Action_ACTION_KEEP, none, none),
		changed(10, "i-new", remudav1.Action_ACTION_LAUNCH, none, created),
		changed(20, "i-new", remudav1.Action_ACTION_READY, created, running),
		changed(30, "i-old", remudav1.Action_ACTION_CLAIM, idle, claimed),
		changed(30, "i-old", remudav1.Action_ACTION_KEEP, none, none),
		changed(40, "i-old", remudav1.Action_ACTION_TERMINATE, claimed, ended),
		changed(45, "", remudav1.Action_ACTION_SETTLE, none, none),
		changed(50, "i-kept", remudav1.Action_ACTION_KEEP, none, none),
	}, now(3, 1), begin, begin.Add(100*time.Minute))
	want := []lane{
		{Name: "i-old", Link: "/ui/host/i-old", Parts: []part{
			{0, 300, "idle", "idle from 12:00:00 to 12:30:00"}, {300, 100, "claimed", "claimed from 12:30:00 to 12:40:00"},
		}, Claims: []place{300}, Ends: []place{400}},
		{Name: "i-new", Link: "/ui/host/i-new", Parts: []part{
			{100, 100, "created", "created from 12:10:00 to 12:20:00"}, {200, 800, "running", "running from 12:20:00 to 13:40:00"},
		}},
	}
	c := chart{From: h.from, To: h.to}
	var lanes []lane
	for _, l := range h.changed {
		lanes = append(lanes, c.host(l))
	}
	if diff := cmp.Diff(want, lanes); diff != "" || h.same != 3 || h.ids["i-kept"] || !h.ids["i-old"] {
		t.Errorf("%d hosts did not change, and these did (-want +got):\n%s", h.same, diff)
	}
	c.show(lanes)
	if diff := cmp.Diff([]label{{150, "12:15"}, {300, "12:30"}, {450, "12:45"}, {600, "13:00"}, {750, "13:15"}, {900, "13:30"}}, c.Hours); diff != "" || c.Lanes[1].Y != laneStep {
		t.Errorf("the axis (-want +got):\n%s", diff)
	}
	if got := place(1000).String() + " " + place(5).String(); got != "100.0% 0.5%" {
		t.Errorf("places are written %s", got)
	}
}

// The slider counts all hosts at each of its stops, and at the last one those that are there now.
func TestTally(t *testing.T) {
	t.Parallel()
	h := historyOf([]*remudav1.Event{
		changed(120, "i-1", remudav1.Action_ACTION_CLAIM, idle, claimed),
		changed(240, "i-1", remudav1.Action_ACTION_TERMINATE, claimed, ended),
		changed(360, "i-3", remudav1.Action_ACTION_READY, none, running),
	}, now(0, 2), begin, begin.Add(tallySteps*time.Minute)) // a stop is a minute
	counts := strings.Split(h.counts.Counts(), ",")
	if h.counts.States() != "created claimed running idle" || len(counts) != tallySteps+1 {
		t.Fatalf("%d counts of %s", len(counts), h.counts.States())
	}
	for stop, want := range map[int]string{0: "0 0 1 1", 119: "0 0 1 1", 120: "0 1 1 0", 239: "0 1 1 0", 240: "0 0 1 0", 359: "0 0 1 0", 360: "0 0 2 0", tallySteps: "0 0 2 0"} {
		if counts[stop] != want {
			t.Errorf("at minute %d there are %s, want %s", stop, counts[stop], want)
		}
	}
}

// A run's requests and jobs come first, from when they began to wait, and then its hosts.
func TestTimeline(t *testing.T) {
	t.Parallel()
	job := on(30, 20, remudav1.Action_ACTION_START_JOB, "", 7)
	job.JobName = "build"
	waits := []*remudav1.Wait{{JobId: 9, JobName: "deploy", BeginTime: timestamppb.New(begin.Add(90 * time.Minute))}, {RequestId: "0123456789", BeginTime: timestamppb.New(begin)}}
	c := timeline([]*remudav1.Event{
		on(10, 0, remudav1.Action_ACTION_SETTLE, "0123456789", 0),
		changed(5, "i-1", remudav1.Action_ACTION_LAUNCH, none, created),
		changed(10, "i-1", remudav1.Action_ACTION_READY, created, running),
		job,
		on(40, 20, remudav1.Action_ACTION_START_JOB, "", 8),
		on(60, 30, remudav1.Action_ACTION_END_JOB, "", 7),
		on(70, 0, remudav1.Action_ACTION_RELEASE, "0123456789", 0),
		changed(75, "i-1", remudav1.Action_ACTION_TERMINATE, running, ended),
		on(80, 20, remudav1.Action_ACTION_REFUSE_JOB, "", 10),
	}, waits, begin.Add(100*time.Minute))
	want := []lane{
		{Name: "request 01234567", Parts: []part{{0, 100, "waiting", "waiting from 12:00:00 to 12:10:00"}}, Ends: []place{700}},
		{Name: "job build", Y: laneStep, Parts: []part{
			{200, 100, "waiting", "waiting from 12:20:00 to 12:30:00"}, {300, 300, "running", "running from 12:30:00 to 13:00:00"},
		}, Ends: []place{600}},
		{Name: "job 8", Y: 2 * laneStep, Parts: []part{
			{200, 200, "waiting", "waiting from 12:20:00 to 12:40:00"}, {400, 600, "running", "running from 12:40:00 to 13:40:00"},
		}},
		{Name: "job 10", Y: 3 * laneStep, Parts: []part{{200, 600, "waiting", "waiting from 12:20:00 to 13:20:00"}}}, // it gets no host
		{Name: "job deploy", Y: 4 * laneStep, Parts: []part{{900, 100, "waiting", "waiting from 13:30:00 to 13:40:00"}}},
		{Name: "i-1", Link: "/ui/host/i-1", Y: 5 * laneStep, Parts: []part{
			{50, 50, "created", "created from 12:05:00 to 12:10:00"}, {100, 650, "running", "running from 12:10:00 to 13:15:00"},
		}, Ends: []place{750}},
	}
	if diff := cmp.Diff(want, c.Lanes); diff != "" || !c.Waits || !c.From.Equal(begin) {
		t.Errorf("from %s (-want +got):\n%s", c.From, diff)
	}
	if c := timeline(nil, nil, begin); len(c.Lanes) != 0 || len(c.Hours) != 0 {
		t.Errorf("of nothing there is %+v", c)
	}
}

// The time of an event names its day unless that is today.
func TestEventTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 0, 30, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{time.Minute: "00:29:00", 31 * time.Minute: "11-26 23:59:00", 24 * time.Hour: "11-26 00:30:00"} {
		if got := eventTime(now.Add(-ago), now); got != want {
			t.Errorf("%s ago is %q, want %q", ago, got, want)
		}
	}
}

// A long history is divided into pages that are small, and no host is left out.
func TestSections(t *testing.T) {
	t.Parallel()
	var events []*remudav1.Event
	for n := range 300 {
		events = append(events, changed(n, fmt.Sprint("i-", n), remudav1.Action_ACTION_LAUNCH, none, created))
	}
	h := historyOf(events, nil, begin, begin.Add(300*time.Minute))
	if !slices.Equal(h.starts, []int{0, 100, 200}) || h.changed[0].id != "i-299" {
		t.Errorf("the pages begin at %v, and the first host is %s", h.starts, h.changed[0].id)
	}
	for n := range 3000 {
		id := fmt.Sprint("i-", n%12)
		events = append(events, changed(n, id, remudav1.Action_ACTION_CLAIM, idle, claimed), changed(n+1, id, remudav1.Action_ACTION_RETURN, claimed, idle))
	}
	h = historyOf(events, nil, begin, begin.Add(3001*time.Minute))
	for i, from := range h.starts {
		parts, to := 0, len(h.changed)
		if i+1 < len(h.starts) {
			to = h.starts[i+1]
		}
		for _, l := range h.changed[from:to] {
			parts += l.parts()
		}
		if parts > mostParts || to-from > mostLanes || to == from {
			t.Errorf("page %d has %d lanes with %d parts", i, to-from, parts)
		}
	}
	if len(h.changed) != 300 || len(h.starts) < 4 {
		t.Errorf("%d lanes on %d pages", len(h.changed), len(h.starts))
	}
}

func TestSectionOf(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]section{
		"":              {0, 100, 250, "", "/ui/runs?page=2"},
		"page=x":        {0, 100, 250, "", "/ui/runs?page=2"},
		"page=2&pool=a": {100, 200, 250, "/ui/runs?page=1&pool=a", "/ui/runs?page=3&pool=a"},
		"page=3":        {200, 250, 250, "/ui/runs?page=2", ""},
		"page=99":       {200, 250, 250, "/ui/runs?page=2", ""},
		"page=-1":       {0, 100, 250, "", "/ui/runs?page=2"},
	} {
		r := httptest.NewRequest("GET", "/ui/runs?"+query, nil)
		if got := sectionOf(r, every(100, 250), 250); got != want {
			t.Errorf("%s is %+v, want %+v", query, got, want)
		}
	}
	if got := sectionOf(httptest.NewRequest("GET", "/ui/runs", nil), every(100, 0), 0); got != (section{}) {
		t.Errorf("of nothing there is %+v", got)
	}
}
