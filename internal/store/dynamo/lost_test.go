package dynamo_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestLostAnswers: the first try of each write is carried out and its answer
// lost. The SDK sends it again, and it fails on its own row.
func TestLostAnswers(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	w.create(t, pooledRecord("a"), pooledRecord("b"))
	if err := w.CreateRequest(t.Context(), newRequest("a")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.CreateJob(t.Context(), newJob(1)), w.CreateWebhook(t.Context(), newWebhook("a"))); err != nil {
		t.Fatal(err)
	}
	updated := pooledRecord("a")
	updated.Uses = 7
	lists := []lifecycle.Event{newEvent("one"), newEvent("two"), {At: began, Reason: "of no run"}}
	writes := []struct {
		name, operation string
		write           func(context.Context) (version int64, err error)
		version         int64
	}{
		{"create an instance", "PutItem", func(ctx context.Context) (int64, error) {
			return 1, w.CreateInstance(ctx, pooledRecord("new"))
		}, 1},
		{"update an instance", "PutItem", func(ctx context.Context) (int64, error) {
			r, err := w.UpdateInstance(ctx, updated)
			return r.Version, err
		}, 2},
		{"claim an instance", "UpdateItem", func(ctx context.Context) (int64, error) {
			r, err := w.ClaimInstance(ctx, claimOf("b", runID))
			if want, _ := pooledRecord("b").Claimed(claimOf("b", runID)); err == nil {
				want.Version = 2
				if diff := cmp.Diff(want, r); diff != "" {
					t.Errorf("what claim returns (-want +got):\n%s", diff)
				}
			}
			return r.Version, err
		}, 2},
		{"create a request", "PutItem", func(ctx context.Context) (int64, error) {
			return 1, w.CreateRequest(ctx, newRequest("new"))
		}, 1},
		{"update a request", "PutItem", func(ctx context.Context) (int64, error) {
			q, err := w.UpdateRequest(ctx, newRequest("a"))
			return q.Version, err
		}, 2},
		{"take a lease", "PutItem", func(ctx context.Context) (int64, error) {
			l, err := w.TakeLease(ctx, replicas.Lease{Name: "sweep", Holder: "a"})
			return l.Version, err
		}, 1},
		{"take it again", "PutItem", func(ctx context.Context) (int64, error) {
			l, err := w.TakeLease(ctx, replicas.Lease{Name: "sweep", Holder: "a", Version: 1})
			return l.Version, err
		}, 2},
		{"create a webhook", "PutItem", func(ctx context.Context) (int64, error) { return 1, w.CreateWebhook(ctx, newWebhook("new")) }, 1},
		{"update a webhook", "PutItem", func(ctx context.Context) (int64, error) {
			h, err := w.UpdateWebhook(ctx, newWebhook("a"))
			return h.Version, err
		}, 2},
		{"create a job", "PutItem", func(ctx context.Context) (int64, error) { return 1, w.CreateJob(ctx, newJob(2)) }, 1},
		{"update a job", "PutItem", func(ctx context.Context) (int64, error) {
			j, err := w.UpdateJob(ctx, newJob(1))
			return j.Version, err
		}, 2},
		{"give the first turn", "PutItem", func(ctx context.Context) (int64, error) {
			turns, err := w.UpdateSlotTable(ctx, slots.Table{Pool: jobPool, Assigned: 1})
			return turns.Version, err
		}, 1},
		{"give another turn", "PutItem", func(ctx context.Context) (int64, error) {
			turns, err := w.UpdateSlotTable(ctx, slots.Table{Pool: jobPool, Assigned: 2, Version: 1})
			return turns.Version, err
		}, 2},
		{"see an id once", "PutItem", func(ctx context.Context) (int64, error) {
			return 0, w.SeeOnce(ctx, "token", "a", began.Add(time.Hour))
		}, 0},
		{"write a report", "UpdateItem", func(ctx context.Context) (int64, error) {
			return 0, w.ForHost("a").PutReport(ctx, lifecycle.Report{HostKey: "a", HeartbeatAt: began})
		}, 0},
		{"delete a report", "DeleteItem", func(ctx context.Context) (int64, error) { return 0, w.DeleteReport(ctx, "a") }, 0},
		{"add events", "PutItem", func(ctx context.Context) (int64, error) { return 0, w.AddEvents(ctx, lists) }, 0},
		{"add the copies of events", "BatchWriteItem", func(ctx context.Context) (int64, error) { return 0, w.AddEvents(ctx, lists) }, 0},
	}
	for _, test := range writes {
		struck := w.proxy.Inject(awstest.Fault{Service: "dynamodb", Operation: test.operation, Nth: 1, Kind: awstest.LostAfterSuccess})
		version, err := test.write(t.Context())
		w.proxy.Heal()
		if err != nil || version != test.version {
			t.Errorf("%s: got version %d and error %v, want version %d and none", test.name, version, err, test.version)
		}
		if len(struck) != 1 {
			t.Errorf("%s: %d answers were lost, want 1", test.name, len(struck))
		}
	}

	for key, version := range map[string]int64{"new": 1, "a": 2, "b": 2} {
		r, err := w.Instance(t.Context(), key)
		if err != nil || r.Version != version {
			t.Errorf("instance %s: got version %d and error %v, want version %d: each write once", key, r.Version, err, version)
		}
	}
	if err := w.SeeOnce(t.Context(), "token", "a", began.Add(time.Hour)); !errors.Is(err, lifecycle.ErrExists) {
		t.Errorf("an id that was seen: got error %v, want %v", err, lifecycle.ErrExists)
	}
	want := []string{"one", "two", "of no run", "one", "two", "of no run"}
	found, _ := everyEvent(t, w.EventsSince, lifecycle.PageOf{})
	if diff := cmp.Diff(want, reasons(found)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	found, _ = everyEvent(t, func(ctx context.Context, of lifecycle.PageOf) (lifecycle.Page[lifecycle.Event], error) {
		return w.EventsOfRun(ctx, repository, runID, of)
	}, lifecycle.PageOf{})
	if diff := cmp.Diff([]string{"one", "two", "one", "two"}, reasons(found)); diff != "" {
		t.Errorf("events of the run (-want +got):\n%s", diff)
	}
}

// TestLostRaces: a try is lost before it is carried out, and another writer
// comes before the next one. What it wrote is not taken for one's own, though it
// is the same to the last attribute.
func TestLostRaces(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	w.create(t, pooledRecord("a"), pooledRecord("b"))
	if err := w.CreateRequest(t.Context(), newRequest("a")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.CreateJob(t.Context(), newJob(1)), w.CreateWebhook(t.Context(), newWebhook("a"))); err != nil {
		t.Fatal(err)
	}
	other := dynamo.New(w.client, dynamo.Options{})
	for _, test := range []struct {
		name, operation string
		write           func(*dynamo.Store) error
		want            error
	}{
		{"update an instance", "PutItem", func(s *dynamo.Store) error {
			_, err := s.UpdateInstance(t.Context(), pooledRecord("a"))
			return err
		}, lifecycle.ErrConflict},
		{"claim an instance", "UpdateItem", func(s *dynamo.Store) error {
			_, err := s.ClaimInstance(t.Context(), claimOf("b", runID))
			return err
		}, lifecycle.ErrConflict},
		{"create an instance", "PutItem", func(s *dynamo.Store) error {
			return s.CreateInstance(t.Context(), pooledRecord("new"))
		}, lifecycle.ErrExists},
		{"update a request", "PutItem", func(s *dynamo.Store) error {
			_, err := s.UpdateRequest(t.Context(), newRequest("a"))
			return err
		}, lifecycle.ErrConflict},
		{"take a lease", "PutItem", func(s *dynamo.Store) error {
			_, err := s.TakeLease(t.Context(), replicas.Lease{Name: "sweep", Holder: "a"})
			return err
		}, lifecycle.ErrConflict},
		{"create a webhook", "PutItem", func(s *dynamo.Store) error {
			return s.CreateWebhook(t.Context(), newWebhook("new"))
		}, lifecycle.ErrExists},
		{"update a webhook", "PutItem", func(s *dynamo.Store) error {
			_, err := s.UpdateWebhook(t.Context(), newWebhook("a"))
			return err
		}, lifecycle.ErrConflict},
		{"create a job", "PutItem", func(s *dynamo.Store) error { return s.CreateJob(t.Context(), newJob(2)) }, lifecycle.ErrExists},
		{"update a job", "PutItem", func(s *dynamo.Store) error {
			_, err := s.UpdateJob(t.Context(), newJob(1))
			return err
		}, lifecycle.ErrConflict},
		{"give the first turn", "PutItem", func(s *dynamo.Store) error {
			_, err := s.UpdateSlotTable(t.Context(), slots.Table{Pool: jobPool, Assigned: 1})
			return err
		}, lifecycle.ErrConflict},
		{"give another turn", "PutItem", func(s *dynamo.Store) error {
			_, err := s.UpdateSlotTable(t.Context(), slots.Table{Pool: jobPool, Assigned: 2, Version: 1})
			return err
		}, lifecycle.ErrConflict},
		{"hold the fleet", "PutItem", func(s *dynamo.Store) error {
			_, err := s.UpdateFleetHold(t.Context(), fleethold.Hold{Until: began})
			return err
		}, lifecycle.ErrConflict},
		{"write an account", "PutItem", func(s *dynamo.Store) error {
			_, err := s.UpdateQuotaLedger(t.Context(), ledger.Quota{Name: "pool/a", Reservations: []ledger.Reservation{{RunID: "1", Hosts: 1}}})
			return err
		}, lifecycle.ErrConflict},
		{"see an id once", "PutItem", func(s *dynamo.Store) error {
			return s.SeeOnce(t.Context(), "token", "a", began.Add(time.Hour))
		}, lifecycle.ErrExists},
	} {
		came := 0
		w.proxy.Handle("dynamodb", test.operation, func(rw http.ResponseWriter, r *http.Request, ask forward) {
			if came++; came == 1 {
				if err := test.write(other); err != nil {
					t.Errorf("%s, the other: %v", test.name, err)
				}
				panic(http.ErrAbortHandler) // closes the connection
			}
			ask(r).Write(rw)
		})
		if err := test.write(w.Store); !errors.Is(err, test.want) || came != 2 {
			t.Errorf("%s: got error %v after %d tries, want %v after 2", test.name, err, came, test.want)
		}
	}
}
