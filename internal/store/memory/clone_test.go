package memory_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/breaker"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

var began = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// seeded is a store with a row in every table.
func seeded(t *testing.T) *memory.Store {
	t.Helper()
	s := memory.New(func() time.Time { return began })
	change(t, s, "a")
	return s
}

// change writes to every table.
func change(t *testing.T, s *memory.Store, name string) {
	t.Helper()
	ctx := t.Context()
	r := lifecycle.Record{
		HostKey: name, State: lifecycle.StateRunning, Labels: []string{"fast"},
		Registration: &lifecycle.Registration{Secret: "do-not-print-me"}, Mirror: &lifecycle.Mirror{Token: "do-not-print-me"},
	}
	_, leaseErr := s.TakeLease(ctx, replicas.Lease{Name: name, Holder: "me"})
	_, serviceErr := s.UpdateService(ctx, model.Service{Name: name, Reason: "nothing waits"})
	_, workerErr := s.UpdateWorker(ctx, model.Worker{Service: "render", ID: name})
	_, turnsErr := s.UpdateSlotTable(ctx, slots.Table{Pool: name, Assigned: 1, Open: []slots.Slot{{Number: 1}}})
	hold, holdErr := s.FleetHold(ctx)
	hold.Until, hold.Reason = began, name
	if holdErr == nil {
		_, holdErr = s.UpdateFleetHold(ctx, hold)
	}
	_, breakerErr := s.UpdateBreaker(ctx, breaker.Row{Pool: name, Interruptions: []breaker.Interruption{{InstanceID: name}}})
	_, accountErr := s.UpdateQuotaLedger(ctx, ledger.Quota{Name: name, Reservations: []ledger.Reservation{{RunID: name, HostKeys: []string{name}}}})
	for _, err := range []error{
		s.CreateInstance(ctx, r),
		s.ForHost(name).PutReport(ctx, lifecycle.Report{HeartbeatAt: began}),
		s.CreateRequest(ctx, lifecycle.Request{Repository: "acme/site", RunID: "1", RequestID: name}),
		s.AddEvents(ctx, []lifecycle.Event{{At: began, Reason: name}}),
		s.CreateWebhook(ctx, lifecycle.Webhook{DeliveryID: name}),
		s.CreateJob(ctx, lifecycle.Job{ID: int64(len(name)), Reason: name}),
		s.SeeOnce(ctx, "token", name, began.Add(time.Hour)),
		s.CreateWork(ctx, model.Job{Service: "render", ID: name}),
		workerErr,
		leaseErr, serviceErr, turnsErr, holdErr, breakerErr, accountErr,
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestCloneIsIndependent(t *testing.T) {
	original := seeded(t)
	before := original.Dump()
	clone := original.Clone()
	if got := clone.Dump(); got != before {
		t.Errorf("dump of the clone:\n%s\nof the original:\n%s", got, before)
	}
	change(t, clone, "of the clone")
	if got := original.Dump(); got != before {
		t.Errorf("the original changed with its clone:\n%s", got)
	}
	change(t, original, "of the original")
	if strings.Contains(clone.Dump(), "of the original") {
		t.Errorf("the clone changed with its original:\n%s", clone.Dump())
	}
	later := clone.Clone()
	later.Now = func() time.Time { return began.Add(48 * time.Hour) }
	if err := later.DeleteReport(t.Context(), "no-such-host"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(later.Dump(), "event") || !strings.Contains(clone.Dump(), "event") {
		t.Errorf("after the clone's clone expired its history:\n%s\nthe clone has:\n%s", later.Dump(), clone.Dump())
	}
}

func TestFingerprint(t *testing.T) {
	ctx := t.Context()
	changes := map[string]struct {
		change func(s *memory.Store) error
		counts bool
	}{
		"instance": {func(s *memory.Store) error {
			_, err := s.UpdateInstance(ctx, lifecycle.Record{HostKey: "a", Version: 1})
			return err
		}, true},
		"secret": {func(s *memory.Store) error {
			r, err := s.Instance(ctx, "a")
			if err == nil {
				r.Registration.Secret = "another"
				_, err = s.UpdateInstance(ctx, r)
			}
			return err
		}, true},
		"report": {func(s *memory.Store) error { return s.DeleteReport(ctx, "a") }, true},
		"request": {func(s *memory.Store) error {
			return s.CreateRequest(ctx, lifecycle.Request{Repository: "acme/site", RunID: "1", RequestID: "b"})
		}, true},
		"lease": {func(s *memory.Store) error {
			_, err := s.TakeLease(ctx, replicas.Lease{Name: "a", Holder: "me", Version: 1})
			return err
		}, true},
		"webhook": {func(s *memory.Store) error { return s.CreateWebhook(ctx, lifecycle.Webhook{DeliveryID: "b"}) }, true},
		"job": {func(s *memory.Store) error {
			_, err := s.UpdateJob(ctx, lifecycle.Job{ID: 1, Version: 1})
			return err
		}, true},
		"turns": {func(s *memory.Store) error {
			_, err := s.UpdateSlotTable(ctx, slots.Table{Pool: "a", Version: 1})
			return err
		}, true},
		"work": {func(s *memory.Store) error { return s.CreateWork(ctx, model.Job{Service: "render", ID: "b"}) }, true},
		"worker": {func(s *memory.Store) error {
			_, err := s.UpdateWorker(ctx, model.Worker{Service: "render", ID: "a", Version: 1})
			return err
		}, true},
		"seen":    {func(s *memory.Store) error { return s.SeeOnce(ctx, "token", "b", began.Add(time.Hour)) }, true},
		"history": {func(s *memory.Store) error { return s.AddEvents(ctx, []lifecycle.Event{{At: began}}) }, false},
	}
	for name, test := range changes {
		t.Run(name, func(t *testing.T) {
			s := seeded(t)
			if s.Fingerprint() != seeded(t).Fingerprint() {
				t.Fatal("two stores that went the same way have different fingerprints")
			}
			before := s.Fingerprint()
			if err := test.change(s); err != nil {
				t.Fatal(err)
			}
			if changed := s.Fingerprint() != before; changed != test.counts {
				t.Errorf("fingerprint changed: %v, want %v", changed, test.counts)
			}
		})
	}
}

func TestDumpHidesSecrets(t *testing.T) {
	dump := seeded(t).Dump()
	if strings.Contains(dump, "do-not-print-me") || strings.Count(dump, "sha256:") != 2 {
		t.Errorf("got a dump without a hash for each secret:\n%s", dump)
	}
}

// TestPurge: what the suite allows to linger goes with a write a minute on.
func TestPurge(t *testing.T) {
	now := began
	s := memory.New(func() time.Time { return now })
	if err := s.CreateInstance(t.Context(), lifecycle.Record{HostKey: "a", ExpiresAt: began.Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	expiring := []error{
		s.CreateWebhook(t.Context(), lifecycle.Webhook{DeliveryID: "expiring", ExpiresAt: began.Add(time.Second)}),
		s.CreateJob(t.Context(), lifecycle.Job{ID: 7, Reason: "expiring", ExpiresAt: began.Add(time.Second)}),
		s.SeeOnce(t.Context(), "token", "expiring", began.Add(time.Second)),
		s.CreateWork(t.Context(), model.Job{Service: "render", ID: "expiring", ExpiresAt: began.Add(time.Second)}),
	}
	if err := errors.Join(expiring...); err != nil {
		t.Fatal(err)
	}
	now = began.Add(59 * time.Second)
	change(t, s, "b")
	if !strings.Contains(s.Dump(), `"hostKey":"a"`) {
		t.Error("purged twice within a minute")
	}
	if got := strings.Count(s.Dump(), "expiring"); got != len(expiring) {
		t.Errorf("%d other rows are left of %d", got, len(expiring))
	}
	now = began.Add(time.Minute)
	change(t, s, "later on")
	if strings.Contains(s.Dump(), `"hostKey":"a"`) || strings.Contains(s.Dump(), "expiring") {
		t.Errorf("an expired row is still there:\n%s", s.Dump())
	}
}
