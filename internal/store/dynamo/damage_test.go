package dynamo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

func hostRow(n int) map[string]string { return map[string]string{"hostKey": hostKeyOf(n)} }

// TestDamagedRowsHideNoOther: what sweeps and callers list is everything except the rows
// that were edited badly by hand, which are reported once.
func TestDamagedRowsHideNoOther(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	for n := range 6 {
		r := pooledRecord(hostKeyOf(n))
		r.DueAt = began
		w.create(t, r)
	}
	for _, id := range []string{"a", "b"} {
		q := newRequest(id)
		q.DueAt = began
		if err := w.CreateRequest(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	w.set(t, "remuda-instances", hostRow(0), "cpu", text(secret))
	w.set(t, "remuda-instances", hostRow(3), "registration", &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
		"secret": text(secret), "expiresAt": text(secret),
	}})
	w.set(t, "remuda-requests", map[string]string{"runKey": repository + "/" + runID, "requestId": "a"}, "taken", text(secret))

	large := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}
	lists := map[string]func(of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error){
		"due": func(of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
			return w.DueInstances(t.Context(), began, of)
		},
		"pooled": func(of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
			return w.PooledInstances(t.Context(), "default", large, repository, of)
		},
		"all": func(of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
			return w.ListInstances(t.Context(), lifecycle.Filter{}, of)
		},
		"by key": func(lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
			var keys []string
			for n := range 6 {
				keys = append(keys, hostKeyOf(n))
			}
			records, err := w.Instances(t.Context(), keys)
			return lifecycle.Page[lifecycle.Record]{Items: records}, err
		},
	}
	want := []string{hostKeyOf(1), hostKeyOf(2), hostKeyOf(4), hostKeyOf(5)}
	for name, list := range lists {
		for _, limit := range []int{0, 1, 2} {
			var keys []string
			for of := (lifecycle.PageOf{Limit: limit}); ; {
				page, err := list(of)
				if err != nil {
					t.Fatalf("%s, %d a page: %v", name, limit, err)
				}
				for _, r := range page.Items {
					keys = append(keys, r.HostKey)
				}
				if of.After = page.Next; of.After == "" {
					break
				}
			}
			if slices.Sort(keys); !slices.Equal(want, keys) {
				t.Errorf("%s, %d a page (-want +got):\n%s", name, limit, cmp.Diff(want, keys))
			}
		}
	}
	due, err := w.DueRequests(t.Context(), began, lifecycle.PageOf{})
	if err != nil || len(due.Items) != 1 || due.Items[0].RequestID != "b" {
		t.Errorf("due requests %+v and error %v, want b", due.Items, err)
	}
	w.wantLog(t, "leaving out a row", 3, hostKeyOf(0), hostKeyOf(3), "cpu", "registration", "taken")

	_, err = w.Instance(t.Context(), hostKeyOf(3))
	_, requestErr := w.RequestsOfRun(t.Context(), repository, runID)
	for name, err := range map[string]error{hostKeyOf(3): err, "request a": requestErr} {
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(fmt.Sprintf("%+v", err), secret) {
			t.Errorf("read of the damaged row: got error %v, want one that names %s and nothing that is in it", err, name)
		}
	}
}

// wantLog wants a message so many times, and the words somewhere.
func (w world) wantLog(t *testing.T, message string, times int, words ...string) {
	t.Helper()
	log := w.log.String()
	if got := strings.Count(log, message); got != times {
		t.Errorf("%q was logged %d times, want %d:\n%s", message, got, times, log)
	}
	for _, word := range words {
		if !strings.Contains(log, word) {
			t.Errorf("the log does not say %q:\n%s", word, log)
		}
	}
	if strings.Contains(log, secret) {
		t.Errorf("the log tells a secret:\n%s", log)
	}
}

// TestForeignReports: what an agent wrote is not believed to be a report, and
// hides no other host's.
func TestForeignReports(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	for n := range 4 {
		if err := w.ForHost(hostKeyOf(n)).PutReport(t.Context(), lifecycle.Report{Assignment: int64(n)}); err != nil {
			t.Fatal(err)
		}
	}
	w.set(t, "remuda-reports", hostRow(1), "assignment", text(secret))
	w.set(t, "remuda-reports", hostRow(2), "heartbeatAt", text(secret))
	want := map[string]lifecycle.Report{hostKeyOf(0): {HostKey: hostKeyOf(0)}, hostKeyOf(3): {HostKey: hostKeyOf(3), Assignment: 3}}
	for range 2 {
		got, err := w.Reports(t.Context(), []string{hostKeyOf(0), hostKeyOf(1), hostKeyOf(2), hostKeyOf(3)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		all := map[string]lifecycle.Report{}
		for of := (lifecycle.PageOf{Limit: 1}); ; {
			page, err := w.AllReports(t.Context(), of)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range page.Items {
				all[p.HostKey] = p
			}
			if of.After = page.Next; of.After == "" {
				break
			}
		}
		if diff := cmp.Diff(want, all); diff != "" {
			t.Errorf("all reports (-want +got):\n%s", diff)
		}
	}
	w.wantLog(t, "ignoring a report", 2, hostKeyOf(1), hostKeyOf(2))

	// One that can be read again is reported when it cannot once more.
	if err := w.ForHost(hostKeyOf(1)).PutReport(t.Context(), lifecycle.Report{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := w.Reports(t.Context(), []string{hostKeyOf(1)})
		if err != nil || len(got) > 1 {
			t.Errorf("got %v and error %v", got, err)
		}
		w.set(t, "remuda-reports", hostRow(1), "busy", text(secret))
	}
	w.wantLog(t, "ignoring a report", 3)
}

// TestLargeReports: an item that is larger than any agent's is no heartbeat, whatever attributes it has. That a job
// runs is believed even then.
func TestLargeReports(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	now := time.Now()
	for n := range 4 {
		if err := w.ForHost(hostKeyOf(n)).PutReport(t.Context(), lifecycle.Report{HeartbeatAt: now, Busy: n == 2, Detail: strings.Repeat("d", lifecycle.MaxDetail)}); err != nil {
			t.Fatal(err)
		}
	}
	w.set(t, "remuda-reports", hostRow(1), "junk", text(strings.Repeat("x", 32<<10)))
	w.set(t, "remuda-reports", hostRow(2), "junk", &types.AttributeValueMemberL{Value: []types.AttributeValue{
		&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"y": &types.AttributeValueMemberSS{Value: []string{strings.Repeat("x", 300<<10)}}}},
	}})
	w.set(t, "remuda-reports", hostRow(3), "junk", text(strings.Repeat("x", 20<<10)))
	got, err := w.Reports(t.Context(), []string{hostKeyOf(0), hostKeyOf(1), hostKeyOf(2), hostKeyOf(3)})
	if err != nil || len(got) != 4 {
		t.Fatalf("got %d reports and error %v", len(got), err)
	}
	for n, want := range []*lifecycle.Report{{HeartbeatAt: now}, nil, {Busy: true}, {HeartbeatAt: now}} {
		believed, err := got[hostKeyOf(n)].Believed(now)
		switch {
		case (believed == nil) != (want == nil), (err == nil) != (n == 0 || n == 3):
			t.Errorf("host %d: %+v is believed, error %v", n, believed, err)
		case want != nil && (believed.HeartbeatAt.Equal(now) == want.HeartbeatAt.IsZero() || believed.Busy != want.Busy):
			t.Errorf("host %d: %+v is believed, want %+v", n, believed, want)
		}
	}
}

func TestDamagedEventsHideNoOther(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	var places []string
	for _, why := range []string{"one", "two", "three"} {
		if err := w.AddEvents(t.Context(), []lifecycle.Event{newEvent(why)}); err != nil {
			t.Fatal(err)
		}
		page, err := w.EventsSince(t.Context(), lifecycle.PageOf{})
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, page.Items[len(page.Items)-1].ID[:16])
	}
	w.set(t, "remuda-events", map[string]string{"subject": "fleet", "id": places[1]}, "events", text(secret))
	for range 2 {
		found, _ := everyEvent(t, w.EventsSince, lifecycle.PageOf{Limit: 1})
		if diff := cmp.Diff([]string{"one", "three"}, reasons(found)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	w.wantLog(t, "leaving out a row", 1, places[1])
}
