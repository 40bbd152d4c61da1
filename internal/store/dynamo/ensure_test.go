package dynamo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// backups are point-in-time recovery, which DynamoDB Local has not.
type backups struct {
	mu sync.Mutex
	on map[string]bool
	// early is how often a table is not ready for it yet.
	early int
}

func withBackups(p *awstest.Proxy) *backups {
	b := &backups{on: map[string]bool{}}
	p.Handle("dynamodb", "DescribeContinuousBackups", func(w http.ResponseWriter, r *http.Request, _ forward) {
		status := "DISABLED"
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.on[tableOf(r)] {
			status = "ENABLED"
		}
		_, _ = fmt.Fprintf(w, `{"ContinuousBackupsDescription":{"ContinuousBackupsStatus":"ENABLED",`+
			`"PointInTimeRecoveryDescription":{"PointInTimeRecoveryStatus":%q}}}`, status)
	})
	p.Handle("dynamodb", "UpdateContinuousBackups", func(w http.ResponseWriter, r *http.Request, _ forward) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.early--; b.early >= 0 {
			awstest.Fail(w, r, http.StatusBadRequest, "ContinuousBackupsUnavailableException", "Backups are being enabled for the table")
			return
		}
		b.on[tableOf(r)] = true
		_, _ = fmt.Fprint(w, `{"ContinuousBackupsDescription":{"ContinuousBackupsStatus":"ENABLED"}}`)
	})
	return b
}

func tableOf(r *http.Request) string {
	var request struct{ TableName string }
	_ = json.NewDecoder(r.Body).Decode(&request) // else it is of no table
	return request.TableName
}

// ensuring is a store whose tables are not there yet.
func ensuring(t *testing.T) (world, *backups) {
	t.Helper()
	w := world{client: newClient(t, awstest.DynamoDB(t)), proxy: awstest.NewProxy(t, awstest.DynamoDB(t))}
	w.Store, w.tags = dynamo.New(newClient(t, w.proxy.URL()), dynamo.Options{}), withTags(w.proxy)
	return w, withBackups(w.proxy)
}

// wantEnsure ensures and wants these changes, in short.
func (w world) wantEnsure(t *testing.T, dryRun bool, want ...string) {
	t.Helper()
	got, err := w.Ensure(t.Context(), dryRun)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, short(got)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func short(changes []resources.Resource) []string {
	var all []string
	for _, c := range changes {
		all = append(all, fmt.Sprintf("%s %s %s", c.Kind, c.Name, c.Change))
	}
	return all
}

var created = []string{
	"table remuda-instances created", "table remuda-reports created", "table remuda-requests created",
	"table remuda-jobs created", "table remuda-events created", "table remuda-leases created",
}

func TestEnsureMakesTheTables(t *testing.T) {
	racepass.CoveredBy(t, "TestReplicasEnsureAtOnce")
	t.Parallel()
	w, backups := ensuring(t)
	backups.early = 2
	w.wantEnsure(t, true, created...)
	if tables, err := w.client.ListTables(t.Context(), nil); err != nil || len(tables.TableNames) != 0 {
		t.Fatalf("a dry run made %v, error %v", tables.TableNames, err)
	}
	w.wantEnsure(t, false, created...)
	w.wantEnsure(t, false)
	w.wantEnsure(t, true)

	for table, want := range map[string][]string{
		"instances": {
			"by-due dueShard dueAt KEYS_ONLY", "by-host hostShard hostKey KEYS_ONLY",
			"by-pool poolKey pooledAt KEYS_ONLY", "by-run runId hostKey KEYS_ONLY",
		},
		"requests": {"by-due dueShard dueAt KEYS_ONLY"},
		"jobs": {
			"by-due dueShard dueAt KEYS_ONLY", "by-pool pool waitingKey KEYS_ONLY", "by-run runKey rowKey KEYS_ONLY",
		},
		"events":  {"by-run runKey id ALL"},
		"reports": nil, "leases": nil,
	} {
		name := "remuda-" + table
		out, err := w.client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			t.Fatal(err)
		}
		if mode := out.Table.BillingModeSummary; mode == nil || mode.BillingMode != types.BillingModePayPerRequest {
			t.Errorf("%s is not on-demand: %+v", name, mode)
		}
		var got []string
		for _, x := range out.Table.GlobalSecondaryIndexes {
			hash, sort := *x.KeySchema[0].AttributeName, *x.KeySchema[1].AttributeName
			got = append(got, fmt.Sprintf("%s %s %s %s", *x.IndexName, hash, sort, x.Projection.ProjectionType))
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("indexes of %s (-want +got):\n%s", name, diff)
		}
		ttl, err := w.client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &name})
		if err != nil {
			t.Fatal(err)
		}
		expires := slices.Contains([]string{"instances", "requests", "jobs", "events"}, table)
		if got := sdk.ToString(ttl.TimeToLiveDescription.AttributeName) == "expiresAt"; got != expires {
			t.Errorf("rows of %s expire: %v, want %v", name, got, expires)
		}
	}
	if diff := cmp.Diff(map[string]bool{"remuda-instances": true, "remuda-requests": true, "remuda-jobs": true}, backups.on); diff != "" {
		t.Errorf("point-in-time recovery (-want +got):\n%s", diff)
	}
	called := slices.Sorted(slices.Values(w.operations()))
	ofOthers := []string{"dynamodb:UpdateTable", "dynamodb:TagResource"} // of tables that differ
	want := operationsOf(slices.DeleteFunc(ofRole(aws.RoleRefresh), func(p aws.Permission) bool { return slices.Contains(ofOthers, p.Action) }))
	if diff := cmp.Diff(want, slices.Compact(called)); diff != "" {
		t.Errorf("calls (-allowed +made):\n%s", diff)
	}
}

// oneAtATime lets one table with indexes be made at a time, as DynamoDB's API reference says of CreateTable. A table is made once it was
// described.
func oneAtATime(p *awstest.Proxy) *int {
	var mu sync.Mutex
	making, refused := "", 0
	p.Handle("dynamodb", "CreateTable", func(w http.ResponseWriter, r *http.Request, forward forward) {
		var request struct {
			TableName              string
			GlobalSecondaryIndexes []any
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &request) // else DynamoDB Local refuses it
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		defer mu.Unlock()
		if len(request.GlobalSecondaryIndexes) > 0 && making != "" {
			refused++
			awstest.Fail(w, r, http.StatusBadRequest, "LimitExceededException", "Subscriber limit exceeded: There is a limit to the number of tables with secondary indexes that can be created simultaneously")
			return
		}
		if len(request.GlobalSecondaryIndexes) > 0 {
			making = request.TableName
		}
		forward(r).Write(w)
	})
	p.Handle("dynamodb", "DescribeTable", func(w http.ResponseWriter, r *http.Request, forward forward) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := forward(r)
		mu.Lock()
		defer mu.Unlock()
		if making != "" && strings.Contains(string(body), making) {
			making = ""
		}
		answer.Write(w)
	})
	return &refused
}

// TestTablesOneAfterAnother: some accounts may make one table with indexes at a time.
func TestTablesOneAfterAnother(t *testing.T) {
	racepass.CoveredBy(t, "TestReplicasEnsureAtOnce")
	t.Parallel()
	w, _ := ensuring(t)
	refused := oneAtATime(w.proxy)
	w.wantEnsure(t, false, created...)
	w.wantEnsure(t, true)
	if *refused == 0 {
		t.Error("DynamoDB refused nothing, so the test shows nothing")
	}
}

// oneIndexAtATime refuses to add indexes to other tables while the first is being added. That takes longer than the SDK repeats a call, five
// times for each of two other tables.
func oneIndexAtATime(p *awstest.Proxy) *int {
	const lasts = 12
	var mu sync.Mutex
	making, refused := "", 0
	p.Handle("dynamodb", "UpdateTable", func(w http.ResponseWriter, r *http.Request, forward forward) {
		var request struct {
			TableName                   string
			GlobalSecondaryIndexUpdates []any
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &request) // else DynamoDB Local refuses it
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		defer mu.Unlock()
		switch {
		case len(request.GlobalSecondaryIndexUpdates) == 0:
		case making == "":
			making = request.TableName
		case making != request.TableName && refused < lasts:
			refused++
			awstest.Fail(w, r, http.StatusBadRequest, "LimitExceededException", "Subscriber limit exceeded: There is a limit to the number of tables with secondary indexes that can be created simultaneously")
			return
		}
		forward(r).Write(w)
	})
	return &refused
}

// TestIndexesOneAfterAnother: an account that may make one index at a time gets those of all its tables.
func TestIndexesOneAfterAnother(t *testing.T) {
	racepass.CoveredBy(t, "TestReplicasEnsureAtOnce")
	t.Parallel()
	w, _ := ensuring(t)
	w.wantEnsure(t, false, created...)
	w.dropIndex(t, "remuda-instances", "by-run")
	w.dropIndex(t, "remuda-requests", "by-due")
	w.dropIndex(t, "remuda-jobs", "by-due")
	refused := oneIndexAtATime(w.proxy)
	w.wantEnsure(t, false, "index remuda-instances/by-run created", "index remuda-requests/by-due created", "index remuda-jobs/by-due created")
	w.wantEnsure(t, true)
	if *refused == 0 {
		t.Error("DynamoDB refused nothing, so the test shows nothing")
	}
}

// TestEnsureMends what an operator changed, or an older version made.
func TestEnsureMends(t *testing.T) {
	racepass.CoveredBy(t, "TestReplicasEnsureAtOnce")
	t.Parallel()
	w, backups := ensuring(t)
	w.wantEnsure(t, false, created...)
	w.dropIndex(t, "remuda-instances", "by-run")
	w.dropIndex(t, "remuda-instances", "by-due")
	expireRows(t, w.client, "remuda-events", "expiresAt", false)
	provision(t, w.client, "remuda-leases")
	backups.on["remuda-requests"] = false

	want := []string{
		"index remuda-instances/by-run created", "index remuda-instances/by-due created", "table remuda-requests updated",
		"table remuda-events updated", "table remuda-leases updated",
	}
	w.wantEnsure(t, true, want...)
	w.wantEnsure(t, false, want...)
	w.wantEnsure(t, false)

	// The new index has the rows.
	r := pooledRecord("a")
	r.DueAt = began
	w.create(t, r)
	due, err := w.DueInstances(t.Context(), began, lifecycle.PageOf{})
	if err != nil || len(due.Items) != 1 {
		t.Errorf("due: got %v and error %v, want the one", due.Items, err)
	}
}

// A table that can be deleted is protected, and then DynamoDB refuses to delete it.
func TestEnsureProtectsTheTables(t *testing.T) {
	racepass.CoveredBy(t, "TestReplicasEnsureAtOnce")
	t.Parallel()
	w, _ := ensuring(t)
	w.wantEnsure(t, false, created...)
	name := "remuda-instances"
	remove := func() error {
		_, err := w.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name})
		return err
	}
	if err := remove(); err == nil {
		t.Fatal("a new table was deleted")
	}
	_, err := w.client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: sdk.Bool(false)})
	if err != nil {
		t.Fatal(err)
	}
	w.wantEnsure(t, true, "table remuda-instances updated")
	w.wantEnsure(t, false, "table remuda-instances updated")
	w.wantEnsure(t, false)
	if err := remove(); err == nil {
		t.Fatal("a table was deleted after it was protected")
	}
}

// dropIndex waits until the index has gone: DynamoDB drops one at a time.
func (w world) dropIndex(t *testing.T, table, index string) {
	t.Helper()
	_, err := w.client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: &table, DeletionProtectionEnabled: sdk.Bool(true),
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
			{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: &index}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		out, err := w.client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(out.Table.GlobalSecondaryIndexes, func(x types.GlobalSecondaryIndexDescription) bool {
			return *x.IndexName == index
		}) {
			return
		}
	}
}

func provision(t *testing.T, client *dynamodb.Client, table string) {
	t.Helper()
	_, err := client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: &table, BillingMode: types.BillingModeProvisioned, DeletionProtectionEnabled: sdk.Bool(true),
		ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: sdk.Int64(1), WriteCapacityUnits: sdk.Int64(1)},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEnsureRefusesWhatIsForeign, leaves it as it is, and does the rest.
func TestEnsureRefusesWhatIsForeign(t *testing.T) {
	racepass.CoveredBy(t, "TestReplicasEnsureAtOnce")
	t.Parallel()
	w, _ := ensuring(t)
	createTable(t, w.client, "remuda-instances", "id")
	name := "remuda-requests"
	_, err := w.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: sdk.String("runKey"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: sdk.String("requestId"), AttributeType: types.ScalarAttributeTypeN},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: sdk.String("runKey"), KeyType: types.KeyTypeHash}, {AttributeName: sdk.String("requestId"), KeyType: types.KeyTypeRange},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	createTable(t, w.client, "remuda-reports", "hostKey")
	createTable(t, w.client, "remuda-leases", "name")
	for _, dryRun := range []bool{true, false} {
		changes, err := w.Ensure(t.Context(), dryRun)
		want := []string{"table remuda-reports updated", "table remuda-jobs created", "table remuda-events created", "table remuda-leases updated"}
		if diff := cmp.Diff(want, short(changes)); diff != "" { // those that were there had no tags
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		for _, want := range []string{"remuda-instances", "remuda-requests", "other keys", "another prefix"} {
			if !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want a refusal that says %q", err, want)
			}
		}
	}
}

func TestEnsureRefusesForeignIndexesAndExpiry(t *testing.T) {
	racepass.CoveredBy(t, "TestReplicasEnsureAtOnce")
	t.Parallel()
	w, _ := ensuring(t)
	w.wantEnsure(t, false, created...)
	expireRows(t, w.client, "remuda-events", "expiresAt", false)
	expireRows(t, w.client, "remuda-events", "at", true)
	name, index, hash := "remuda-requests", "by-due", "deadline"
	w.dropIndex(t, name, index)
	_, err := w.client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: &name, DeletionProtectionEnabled: sdk.Bool(true),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &hash, AttributeType: types.ScalarAttributeTypeS}},
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: &index, KeySchema: []types.KeySchemaElement{{AttributeName: &hash, KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := w.Ensure(t.Context(), false)
	if len(changes) != 0 {
		t.Errorf("changes: %v", changes)
	}
	for _, want := range []string{"index by-due of table remuda-requests", "table remuda-events expires its rows by attribute at"} {
		if !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want a refusal that says %q", err, want)
		}
	}
}

// TestEnsureSaysWhatIsMissing: each action that is not allowed is named, and
// what another action does is done.
func TestEnsureSaysWhatIsMissing(t *testing.T) {
	racepass.CoveredBy(t, "TestReplicasEnsureAtOnce")
	t.Parallel()
	for _, p := range ofRole(aws.RoleRefresh) {
		t.Run(p.Action, func(t *testing.T) {
			t.Parallel()
			w, backups := ensuring(t)
			switch p.Action {
			case "dynamodb:UpdateTable":
				w.wantEnsure(t, false, created...)
				provision(t, w.client, "remuda-leases")
			case "dynamodb:ListTagsOfResource", "dynamodb:TagResource":
				w.wantEnsure(t, false, created...)
				w.tags.put("remuda-leases", tag{"remuda:fleet", "another"})
			}
			_, operation, _ := strings.Cut(p.Action, ":")
			w.proxy.Handle("dynamodb", operation, func(rw http.ResponseWriter, r *http.Request, _ forward) {
				awstest.Fail(rw, r, http.StatusBadRequest, "AccessDeniedException", "you may not")
			})
			changes, err := w.Ensure(t.Context(), false)
			if !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), p.Action) || !strings.Contains(err.Error(), "remuda-") {
				t.Errorf("got error %v, want a refusal that names %s and the table", err, p.Action)
			}
			switch operation {
			case "DescribeTable", "CreateTable", "UpdateTable", "ListTagsOfResource", "TagResource":
				if len(changes) != 0 {
					t.Errorf("changes %v, want none", short(changes))
				}
			default:
				if diff := cmp.Diff(created, short(changes)); diff != "" {
					t.Errorf("changes (-want +got):\n%s", diff)
				}
			}
			if strings.Contains(operation, "TimeToLive") && !backups.on["remuda-instances"] {
				t.Error("what may not be told of expiry kept the table from its backups")
			}
		})
	}
}

// TestEnsureWithoutBackupsAndTags: an emulator that knows none is no error.
func TestEnsureWithoutBackupsAndTags(t *testing.T) {
	racepass.CoveredBy(t, "TestReplicasEnsureAtOnce")
	t.Parallel()
	w := world{client: newClient(t, awstest.DynamoDB(t))}
	w.Store = dynamo.New(w.client, dynamo.Options{})
	w.wantEnsure(t, false, created...)
	w.wantEnsure(t, false)
}

// TestReplicasEnsureAtOnce: the second replica finds what the first made.
func TestReplicasEnsureAtOnce(t *testing.T) {
	t.Parallel()
	w, _ := ensuring(t)
	for _, spoil := range []func(){func() {}, func() {
		w.dropIndex(t, "remuda-instances", "by-run")
		w.dropIndex(t, "remuda-instances", "by-due")
		expireRows(t, w.client, "remuda-events", "expiresAt", false)
	}} {
		spoil()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := dynamo.New(newClient(t, w.proxy.URL()), dynamo.Options{}).Ensure(t.Context(), false); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		w.wantEnsure(t, true)
	}
}
