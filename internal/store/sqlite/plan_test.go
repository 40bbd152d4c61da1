package sqlite_test

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestQueryPlans: each query goes straight to its place in its index, and finds
// its rows in order there.
func TestQueryPlans(t *testing.T) {
	racepass.OneGoroutine(t)
	file := dbtest.Open(t, dbtest.File(t), db.Options{})
	for index, query := range sqlite.Queries {
		t.Run(index, func(t *testing.T) {
			plan := planOf(t, file, query)
			if !strings.Contains(plan, "SEARCH") || !strings.Contains(plan, index) {
				t.Errorf("the plan does not search %s:\n%s", index, plan)
			}
			scans := strings.ReplaceAll(plan, "SCAN json_each", "")
			if strings.Contains(scans, "SCAN") || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("the plan scans or sorts:\n%s", plan)
			}
		})
	}
}

func planOf(t *testing.T, file *db.DB, query string) string {
	t.Helper()
	var plan []string
	args := make([]any, strings.Count(query, "?"))
	err := file.Read(t.Context(), "explain", func(c *db.Conn) error {
		return c.Each("EXPLAIN QUERY PLAN "+query, args, func(rows *sql.Rows) error {
			var id, parent, unused int64
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				return err
			}
			plan = append(plan, detail)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}

// TestStatementsAreKept: a query is compiled once, and not again at each execution.
func TestStatementsAreKept(t *testing.T) {
	racepass.OneGoroutine(t)
	for _, query := range append(slices.Collect(maps.Values(sqlite.Queries)), sqlite.SelectAllReports) {
		args := slices.Repeat([]any{1}, strings.Count(query, "?"))
		if !dbtest.KeepsCompiled(t, query, args...) {
			t.Errorf("SQLite compiles this again at each execution:\n%s", query)
		}
	}
}

// TestDueCost: the due query reads what is due, whatever else there is.
func TestDueCost(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	const hosts, due = 4000, 20
	file := dbtest.Open(t, dbtest.File(t), db.Options{Now: func() time.Time { return began }})
	s := sqlite.New(file)
	fill(t, s, hosts, func(n int, r *lifecycle.Record) {
		if n%(hosts/due) == 7 {
			r.DueAt = began
		}
	})
	rows, pages := file.RowsRead(), pagesRead(t, file)
	page, err := s.DueInstances(context.Background(), began, lifecycle.PageOf{Limit: due})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Items) != due || page.Next != "" {
		t.Errorf("got %d hosts and token %q, want %d and none", len(page.Items), page.Next, due)
	}
	if got := file.RowsRead() - rows; got != due {
		t.Errorf("read %d rows, want %d", got, due)
	}
	// A row costs a way down the table, which is three pages high here, and a
	// look at the index. The table has over 1,000 pages.
	if got := pagesRead(t, file) - pages; got > 5*due {
		t.Errorf("looked at %d pages for %d rows", got, due)
	}
}

// TestNewestCost: a list of the newest, which no page follows, reads no row more than it has.
func TestNewestCost(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	file := dbtest.Open(t, dbtest.File(t), db.Options{Now: func() time.Time { return began }})
	s := sqlite.New(file)
	fill(t, s, 20, unchanged)
	// The writer looks for expired rows after it has answered, and takes no other write before.
	if err := file.Write(t.Context(), "nothing", func(*db.Conn) error { return nil }); err != nil {
		t.Fatal(err)
	}
	of, rows := pooled(0), file.RowsRead()
	newest, err := s.ClaimablePooled(t.Context(), of.Pool, lifecycle.QueueName{ResourceClass: of.ResourceClass, UsageClass: of.UsageClass}, of.TrustKey, 6)
	if read := file.RowsRead() - rows; err != nil || len(newest) != 6 || read != 6 {
		t.Errorf("%d rows were read for %d hosts, want 6 of each: %v", read, len(newest), err)
	}
}
