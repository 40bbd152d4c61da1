package page

import (
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

func TestChart(t *testing.T) {
	t.Parallel()
	c := chartOf([]*remudav1.Event{
		changed(10, "i-new", remudav1.Action_ACTION_LAUNCH, none, created),
		changed(20, "i-new", remudav1.Action_ACTION_READY, created, running),
		changed(30, "i-old", remudav1.Action_ACTION_CLAIM, idle, claimed),
		changed(30, "i-old", remudav1.Action_ACTION_KEEP, none, none),
		changed(40, "i-old", remudav1.Action_ACTION_TERMINATE, claimed, ended),
		changed(45, "", remudav1.Action_ACTION_SETTLE, none, none),
		changed(50, "i-kept", remudav1.Action_ACTION_KEEP, none, none),
	}, begin, begin.Add(100*time.Minute))
	want := []lane{
		{Host: "i-old", Link: "/ui/host/i-old", Parts: []part{
			{0, 300, "idle", "idle from 12:00:00 to 12:30:00"}, {300, 100, "claimed", "claimed from 12:30:00 to 12:40:00"},
		}, Claims: []place{300}, Ends: []place{400}},
		{Host: "i-new", Link: "/ui/host/i-new", Y: laneStep, Parts: []part{
			{100, 100, "created", "created from 12:10:00 to 12:20:00"}, {200, 800, "running", "running from 12:20:00 to 13:40:00"},
		}},
	}
	if diff := cmp.Diff(want, c.Lanes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]label{{150, "12:15"}, {300, "12:30"}, {450, "12:45"}, {600, "13:00"}, {750, "13:15"}, {900, "13:30"}}, c.Hours); diff != "" {
		t.Errorf("the axis (-want +got):\n%s", diff)
	}
	if got := place(1000).String() + " " + place(5).String(); got != "100.0% 0.5%" {
		t.Errorf("places are written %s", got)
	}
}

// A chart of many hosts has those that changed last, and says how many it leaves out.
func TestLargeChart(t *testing.T) {
	t.Parallel()
	var events []*remudav1.Event
	for n := range 300 {
		events = append(events, changed(n, string(rune('A'+n)), remudav1.Action_ACTION_LAUNCH, none, created))
	}
	c := chartOf(events, begin, begin.Add(300*time.Minute))
	if len(c.Lanes) != mostLanes || c.More != 200 || c.Lanes[0].Host != string(rune('A'+299)) {
		t.Errorf("%d lanes, %d more, the first is %q", len(c.Lanes), c.More, c.Lanes[0].Host)
	}
	events = nil
	for n := range 3000 {
		events = append(events, changed(n, "i-busy", remudav1.Action_ACTION_CLAIM, idle, claimed), changed(n, "i-busy", remudav1.Action_ACTION_RETURN, claimed, idle))
	}
	if c := chartOf(events, begin, begin.Add(3000*time.Minute)); len(c.Lanes) != 1 || len(c.Lanes[0].Parts) > mostParts {
		t.Errorf("one busy host has %d lanes", len(c.Lanes))
	}
	if c := chartOf(nil, begin, begin); len(c.Lanes) != 0 || len(c.Hours) != 0 {
		t.Errorf("of nothing there is %+v", c)
	}
}
