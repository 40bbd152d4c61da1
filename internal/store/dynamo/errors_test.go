package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/breaker"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/ledger"
	"github.com/remuda-ci/remuda/internal/lifecycle/replicas"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// methods are all of the port, on rows that need not be there. Each makes at
// least one call, to the table that it names.
func methods(s *dynamo.Store) map[string]func(context.Context) error {
	of := lifecycle.PageOf{}
	pool := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}
	return map[string]func(context.Context) error{
		"instances CreateInstance": func(ctx context.Context) error { return s.CreateInstance(ctx, pooledRecord("new")) },
		"instances UpdateInstance": func(ctx context.Context) error { _, err := s.UpdateInstance(ctx, pooledRecord("a")); return err },
		"instances ClaimInstance":  func(ctx context.Context) error { _, err := s.ClaimInstance(ctx, claimOf("a", "1")); return err },
		"instances Instance":       func(ctx context.Context) error { _, err := s.Instance(ctx, "a"); return err },
		"instances Instances":      func(ctx context.Context) error { _, err := s.Instances(ctx, []string{"a"}); return err },
		"instances InstancesOfRun": func(ctx context.Context) error { _, err := s.InstancesOfRun(ctx, runID, of); return err },
		"instances NewestPooled": func(ctx context.Context) error {
			_, err := s.NewestPooled(ctx, "default", pool, repository, 1)
			return err
		},
		"instances ClaimablePooled": func(ctx context.Context) error {
			_, err := s.ClaimablePooled(ctx, "default", pool, repository, 1)
			return err
		},
		"instances PooledInstances": func(ctx context.Context) error {
			_, err := s.PooledInstances(ctx, "default", pool, repository, of)
			return err
		},
		"instances DueInstances":  func(ctx context.Context) error { _, err := s.DueInstances(ctx, began, of); return err },
		"instances ListInstances": func(ctx context.Context) error { _, err := s.ListInstances(ctx, lifecycle.Filter{}, of); return err },
		"reports Reports":         func(ctx context.Context) error { _, err := s.Reports(ctx, []string{"a"}); return err },
		"reports AllReports":      func(ctx context.Context) error { _, err := s.AllReports(ctx, of); return err },
		"reports DeleteReport":    func(ctx context.Context) error { return s.DeleteReport(ctx, "a") },
		"requests CreateRequest":  func(ctx context.Context) error { return s.CreateRequest(ctx, newRequest("new")) },
		"requests UpdateRequest":  func(ctx context.Context) error { _, err := s.UpdateRequest(ctx, newRequest("a")); return err },
		"requests Request":        func(ctx context.Context) error { _, err := s.Request(ctx, repository, runID, "a"); return err },
		"requests RequestsOfRun":  func(ctx context.Context) error { _, err := s.RequestsOfRun(ctx, repository, runID); return err },
		"requests DueRequests":    func(ctx context.Context) error { _, err := s.DueRequests(ctx, began, of); return err },
		"events AddEvents":        func(ctx context.Context) error { return s.AddEvents(ctx, []lifecycle.Event{newEvent("new")}) },
		"events EventsOfInstance": func(ctx context.Context) error {
			_, err := s.EventsOfInstance(ctx, "i-a", began, time.Time{}, 10)
			return err
		},
		"events EventsOfRun": func(ctx context.Context) error { _, err := s.EventsOfRun(ctx, repository, runID, of); return err },
		"events EventsSince": func(ctx context.Context) error { _, err := s.EventsSince(ctx, of); return err },
		"events LastEvent":   func(ctx context.Context) error { _, err := s.LastEvent(ctx); return err },
		"leases Lease":       func(ctx context.Context) error { _, err := s.Lease(ctx, "sweep"); return err },
		"leases TakeLease": func(ctx context.Context) error {
			_, err := s.TakeLease(ctx, replicas.Lease{Name: "sweep"})
			return err
		},
		"jobs CreateWebhook": func(ctx context.Context) error { return s.CreateWebhook(ctx, newWebhook("new")) },
		"jobs UpdateWebhook": func(ctx context.Context) error { _, err := s.UpdateWebhook(ctx, newWebhook("a")); return err },
		"jobs Webhook":       func(ctx context.Context) error { _, err := s.Webhook(ctx, "a"); return err },
		"jobs DueWebhooks":   func(ctx context.Context) error { _, err := s.DueWebhooks(ctx, began, of); return err },
		"jobs CreateJob":     func(ctx context.Context) error { return s.CreateJob(ctx, newJob(2)) },
		"jobs UpdateJob":     func(ctx context.Context) error { _, err := s.UpdateJob(ctx, newJob(1)); return err },
		"jobs Job":           func(ctx context.Context) error { _, err := s.Job(ctx, 1); return err },
		"jobs OpenJobsOfRun": func(ctx context.Context) error { _, err := s.OpenJobsOfRun(ctx, repository, runID); return err },
		"jobs WaitingJobs":   func(ctx context.Context) error { _, err := s.WaitingJobs(ctx, jobPool, of); return err },
		"jobs DueJobs":       func(ctx context.Context) error { _, err := s.DueJobs(ctx, began, of); return err },
		"jobs Turns":         func(ctx context.Context) error { _, err := s.SlotTable(ctx, jobPool); return err },
		"jobs UpdateTurns": func(ctx context.Context) error {
			_, err := s.UpdateSlotTable(ctx, slots.Table{Pool: jobPool})
			return err
		},
		"jobs CreateWork":  func(ctx context.Context) error { return s.CreateWork(ctx, newWork("new")) },
		"jobs UpdateWork":  func(ctx context.Context) error { _, err := s.UpdateWork(ctx, newWork("a")); return err },
		"jobs Work":        func(ctx context.Context) error { _, err := s.Work(ctx, "render", "a"); return err },
		"jobs WaitingWork": func(ctx context.Context) error { _, err := s.WaitingWork(ctx, "render", 10); return err },
		"jobs CountWork":   func(ctx context.Context) error { _, err := s.CountWork(ctx, "render", 10); return err },
		"jobs ListWork": func(ctx context.Context) error {
			_, err := s.ListWork(ctx, "render", model.JobStates, of)
			return err
		},
		"jobs DueWork":      func(ctx context.Context) error { _, err := s.DueWork(ctx, began, of); return err },
		"jobs Worker":       func(ctx context.Context) error { _, err := s.Worker(ctx, "render", "w"); return err },
		"jobs UpdateWorker": func(ctx context.Context) error { _, err := s.UpdateWorker(ctx, newWorker("w")); return err },
		"jobs Workers":      func(ctx context.Context) error { _, err := s.Workers(ctx, "render", of); return err },
		"leases FleetHold":  func(ctx context.Context) error { _, err := s.FleetHold(ctx); return err },
		"leases UpdateFleetHold": func(ctx context.Context) error {
			_, err := s.UpdateFleetHold(ctx, fleethold.Hold{Until: began})
			return err
		},
		"leases Breaker": func(ctx context.Context) error { _, err := s.Breaker(ctx, jobPool); return err },
		"leases UpdateBreaker": func(ctx context.Context) error {
			_, err := s.UpdateBreaker(ctx, breaker.Row{Pool: jobPool})
			return err
		},
		"leases Account": func(ctx context.Context) error { _, err := s.QuotaLedger(ctx, "pool/a"); return err },
		"leases UpdateAccount": func(ctx context.Context) error {
			_, err := s.UpdateQuotaLedger(ctx, ledger.Quota{Name: "pool/a"})
			return err
		},
		"events SeeOnce":             func(ctx context.Context) error { return s.SeeOnce(ctx, "token", "a", began.Add(time.Hour)) },
		"instances HostView.Record":  func(ctx context.Context) error { _, _, err := s.ForHost("a").Record(ctx, true); return err },
		"reports HostView.PutReport": func(ctx context.Context) error { return s.ForHost("a").PutReport(ctx, lifecycle.Report{}) },
	}
}

// wantErrors calls every method and wants an error of the class, that says all
// of what.
func wantErrors(t *testing.T, s *dynamo.Store, class error, what func(table string) []string) {
	t.Helper()
	for name, call := range methods(s) {
		err := call(t.Context())
		if !errors.Is(err, class) {
			t.Errorf("%s: got error %v, want %v", name, err, class)
			continue
		}
		table, _, _ := strings.Cut(name, " ")
		for _, want := range what(table) {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q does not say %q", name, err, want)
			}
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: error %q tells a secret", name, err)
		}
	}
}

func nothing(string) []string { return nil }

func TestThrottlingIsUnavailable(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	for _, kind := range []awstest.Kind{awstest.Throttle, awstest.InternalError, awstest.LostBeforeSend, awstest.Timeout} {
		w.proxy.Inject(awstest.Fault{Kind: kind})
		// A replica of its own, as each call fails with the retries of them all.
		wantErrors(t, w.replica(t), lifecycle.ErrUnavailable, nothing)
		w.proxy.Heal()
	}
}

func TestMissingTablesAreNamed(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	s := dynamo.New(newClient(t, awstest.DynamoDB(t)), dynamo.Options{Prefix: "nowhere"})
	wantErrors(t, s, lifecycle.ErrRefused, func(table string) []string {
		return []string{"nowhere-" + table, "us-east-1", "run Refresh", "controld config check --aws"}
	})
}

func TestForeignTablesAreNamed(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	client := newClient(t, awstest.DynamoDB(t))
	for _, table := range []string{"instances", "reports", "requests", "jobs", "events", "leases"} {
		createTable(t, client, "foreign-"+table, "theirs")
	}
	s := dynamo.New(client, dynamo.Options{Prefix: "foreign"})
	calls := methods(s)
	for name := range calls {
		if strings.HasSuffix(name, "AllReports") { // a scan of an empty table sees no schema
			delete(calls, name)
		}
	}
	for name, call := range calls {
		table, _, _ := strings.Cut(name, " ")
		err := call(t.Context())
		if !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), "foreign-"+table) ||
			!strings.Contains(err.Error(), "controld config check --aws") {
			t.Errorf("%s: got error %v, want a refusal that names the table and the remedy", name, err)
		}
	}
}

func createTable(t *testing.T, client *dynamodb.Client, name, key string) {
	t.Helper()
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, DeletionProtectionEnabled: sdk.Bool(true),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRefusalsSayWhatToDo: DynamoDB Local lets everybody in, so the proxy says
// what DynamoDB would.
func TestRefusalsSayWhatToDo(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	tests := []struct{ code, message, want string }{
		{"UnrecognizedClientException", "The security token included in the request is invalid.", "AWS_ACCESS_KEY_ID"},
		{"ExpiredTokenException", "The security token included in the request is expired", "AWS_ACCESS_KEY_ID"},
		{"AccessDeniedException", "User: x is not authorized to perform this", "allow the action dynamodb:"},
	}
	for _, test := range tests {
		t.Run(test.code, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, operation := range operationsOf(dynamo.Actions()) {
				w.proxy.Handle("dynamodb", operation, func(rw http.ResponseWriter, r *http.Request, _ forward) {
					awstest.Fail(rw, r, http.StatusBadRequest, test.code, test.message)
				})
			}
			wantErrors(t, w.Store, lifecycle.ErrRefused, func(string) []string { return []string{test.code, test.want} })
			_, err := w.Ensure(t.Context(), true)
			if !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "remuda-instances") {
				t.Errorf("ensure: got error %v, want a refusal that names the table and says %q", err, test.want)
			}
		})
	}
}

// TestNoErrorTellsASecret: the row that a failed condition returns has one.
func TestNoErrorTellsASecret(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	r := pooledRecord("a")
	r.Registration = claimOf("a", runID).Registration
	w.create(t, r)
	stale := r
	stale.Version = 7
	_, lost := w.UpdateInstance(t.Context(), stale)
	wrong := claimOf("a", runID)
	wrong.TrustKey = "acme/other"
	_, refused := w.ClaimInstance(t.Context(), wrong)
	for i, err := range []error{lost, refused, w.CreateInstance(t.Context(), r)} {
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
			t.Errorf("error %d: got %v, want one without the secret", i, err)
		}
	}
}

func TestUnnamedRowsAreNotFound(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	_, _, err := w.ForHost("").Record(t.Context(), true)
	if !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("record: got error %v, want %v", err, lifecycle.ErrNotFound)
	}
	if _, err := w.Request(t.Context(), repository, runID, ""); !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("request: got error %v, want %v", err, lifecycle.ErrNotFound)
	}
	found, err := w.Instances(t.Context(), []string{"", "a"})
	if err != nil || len(found) != 0 {
		t.Errorf("instances: got %v and error %v, want none of either", found, err)
	}
	if err := w.DeleteReport(t.Context(), ""); err != nil {
		t.Errorf("delete a report: %v", err)
	}
}

// TestExpiredRowsMakeRoom: DynamoDB removes them days later.
func TestExpiredRowsMakeRoom(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	t.Parallel()
	w := newWorld(t)
	for _, table := range []string{"remuda-instances", "remuda-requests", "remuda-jobs", "remuda-events"} {
		expireRows(t, w.client, table, "expiresAt", false)
	}
	for range 2 {
		j, h := newJob(1), newWebhook("a")
		j.ExpiresAt, h.ExpiresAt = began.Add(-1), began.Add(-1)
		err := errors.Join(w.CreateJob(t.Context(), j), w.CreateWebhook(t.Context(), h), w.SeeOnce(t.Context(), "token", "a", began.Add(-1)))
		if err != nil {
			t.Error(err)
		}

		r := pooledRecord("a")
		r.ExpiresAt = began.Add(-1)
		w.create(t, r)
		q := newRequest("a")
		q.ExpiresAt = began.Add(-1)
		if err := w.CreateRequest(t.Context(), q); err != nil {
			t.Error(err)
		}
	}
	_, err := w.Instance(t.Context(), "a")
	_, noRequest := w.Request(t.Context(), repository, runID, "a")
	if !errors.Is(err, lifecycle.ErrNotFound) || !errors.Is(noRequest, lifecycle.ErrNotFound) {
		t.Errorf("expired rows: got errors %v and %v, want %v", err, noRequest, lifecycle.ErrNotFound)
	}
	due, err := w.DueInstances(t.Context(), began.Add(time.Hour), lifecycle.PageOf{})
	if err != nil || len(due.Items) != 0 {
		t.Errorf("due: got %v and error %v, want none of either", due.Items, err)
	}
	w.wantNoJobs(t)
	r := pooledRecord("a")
	r.ExpiresAt = began.Add(time.Hour)
	w.create(t, r)
	if err := w.CreateInstance(t.Context(), r); !errors.Is(err, lifecycle.ErrExists) {
		t.Errorf("a row that has not expired: got error %v, want %v", err, lifecycle.ErrExists)
	}
}

// wantNoJobs wants neither a job nor a webhook.
func (w world) wantNoJobs(t *testing.T) {
	t.Helper()
	_, jobErr := w.Job(t.Context(), 1)
	_, webhookErr := w.Webhook(t.Context(), "a")
	if !errors.Is(jobErr, lifecycle.ErrNotFound) || !errors.Is(webhookErr, lifecycle.ErrNotFound) {
		t.Errorf("expired rows: got errors %v and %v, want %v", jobErr, webhookErr, lifecycle.ErrNotFound)
	}
	waiting, err := w.WaitingJobs(t.Context(), jobPool, lifecycle.PageOf{})
	due, dueErr := w.DueJobs(t.Context(), began.Add(time.Hour), lifecycle.PageOf{})
	webhooks, webhooksErr := w.DueWebhooks(t.Context(), began.Add(time.Hour), lifecycle.PageOf{})
	open, openErr := w.OpenJobsOfRun(t.Context(), repository, runID)
	if err := errors.Join(err, dueErr, webhooksErr, openErr); err != nil {
		t.Error(err)
	}
	if n := len(waiting.Items) + len(due.Items) + len(webhooks.Items) + len(open); n != 0 {
		t.Errorf("got %d rows, want none", n)
	}
}

// TestCallersThatGoWhileTheyWait get unavailable, with their own reason.
func TestCallersThatGoWhileTheyWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := slices.Sorted(maps.Keys(methods(w.Store)))
	for _, name := range names {
		ctx, cancel := context.WithCancel(t.Context())
		struck := w.proxy.Inject(awstest.Fault{Nth: 1, Kind: awstest.Hang})
		go func() { <-struck; cancel() }()
		err := methods(w.Store)[name](ctx)
		if !errors.Is(err, lifecycle.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v, want %v of %v", name, err, lifecycle.ErrUnavailable, context.Canceled)
		}
		w.proxy.Heal()
	}
}
