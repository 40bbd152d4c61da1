package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// Queries are those whose cost must grow with what they find.
var Queries = map[string]string{
	"instances_by_run":             selectByRun,
	"instances_by_pool":            selectByPool,
	"instances_by_due":             selectDueInstances,
	"requests_by_due":              selectDueRequests,
	"events_by_run":                selectEventsOfRun,
	"events_by_instance":           selectEventsOfInstance,
	"sqlite_autoindex_instances_1": selectInstance,
	"sqlite_autoindex_requests_1":  selectRequestsOfRun,
	"sqlite_autoindex_reports_1":   selectReports,
	"INTEGER PRIMARY KEY":          selectEvents,
	"sqlite_autoindex_webhooks_1":  selectWebhook,
	"webhooks_by_due":              selectDueWebhooks,
	"jobs_by_run":                  selectOpenJobs,
	"jobs_by_pool":                 selectWaitingJobs,
	"jobs_by_due":                  selectDueJobs,
	"jobs USING INTEGER PRIMARY":   selectJob,
	"sqlite_autoindex_turns_1":     turns.sel,
	"sqlite_autoindex_guards_1":    guards.sel,
	"sqlite_autoindex_services_1":  services.sel,
	"work_by_age":                  selectWaitingWork,
	"COVERING INDEX work_by_age":   countWork,
	"work_by_age (service=? AND state=? AND (created_at,id)>(?,?))": selectWorkByState,
	"work_by_due":                selectDueWork,
	"sqlite_autoindex_work_1":    selectWork,
	"sqlite_autoindex_workers_1": selectWorkers,
}

// Disagreements are the rows whose document and columns do not say the same,
// and whatever else is wrong with the file.
func (s *Store) Disagreements(ctx context.Context) (wrong []string, rows int, err error) {
	err = s.db.Read(ctx, "check", func(c *db.Conn) error {
		var verdict string
		if err := c.Get("PRAGMA integrity_check", nil, &verdict); err != nil || verdict != "ok" {
			return fmt.Errorf("integrity check: %s: %w", verdict, err)
		}
		n, bad, err := compare(c, `SELECT doc, version, state, run_id, pool, resource_class, usage_class, trust_key,
			pooled_at, due_at, expires_at, host_key FROM instances`, 12, instanceRow)
		if err != nil {
			return err
		}
		m, worse, err := compare(c, `SELECT doc, version, due_at, expires_at, repository, run_id, request_id FROM requests`, 7, requestRow)
		if err != nil {
			return err
		}
		rows, wrong = n+m, append(bad, worse...)
		n, bad, err = compareJobs(c)
		rows, wrong = rows+n, append(wrong, bad...)
		if err != nil {
			return err
		}
		n, bad, err = compareNamed(c)
		rows, wrong = rows+n, append(wrong, bad...)
		return err
	})
	return wrong, rows, err
}

func compareJobs(c *db.Conn) (rows int, wrong []string, err error) {
	n, bad, err := compare(c, `SELECT doc, version, due_at, expires_at, delivery_id FROM webhooks`, 5, webhookRow)
	if err != nil {
		return 0, nil, err
	}
	m, worse, err := compare(c, `SELECT doc, version, repository, open_run, pool, waiting_since, due_at, expires_at, id FROM jobs`, 9, jobRow)
	if err != nil {
		return 0, nil, err
	}
	o, worst, err := compareWork(c)
	return n + m + o, slices.Concat(bad, worse, worst), err
}

func compareNamed(c *db.Conn) (rows int, wrong []string, err error) {
	for _, each := range []func() (int, []string, error){
		func() (int, []string, error) {
			return compare(c, `SELECT doc, version, pool FROM turns`, 3, columnsOf(func(t lifecycle.SlotTable) (int64, string) { return t.Version, t.Pool }))
		},
		func() (int, []string, error) {
			return compare(c, `SELECT doc, version, name FROM services`, 3, columnsOf(func(v model.Service) (int64, string) { return v.Version, v.Name }))
		},
		func() (int, []string, error) {
			return compare(c, `SELECT doc, version, substr(name, 9) FROM guards WHERE name LIKE 'breaker/%'`, 3,
				columnsOf(func(b lifecycle.Breaker) (int64, string) { return b.Version, b.Pool }))
		},
		func() (int, []string, error) {
			return compare(c, `SELECT doc, version, substr(name, 9) FROM guards WHERE name LIKE 'account/%'`, 3,
				columnsOf(func(a lifecycle.QuotaLedger) (int64, string) { return a.Version, a.Name }))
		},
	} {
		n, bad, err := each()
		if err != nil {
			return 0, nil, err
		}
		rows, wrong = rows+n, append(wrong, bad...)
	}
	return rows, wrong, nil
}

// columnsOf is how a row of a register is made.
func columnsOf[T any](key func(T) (version int64, name string)) func(string, T) ([]any, error) {
	return func(what string, v T) ([]any, error) {
		doc, err := document(what, v)
		version, name := key(v)
		return []any{doc, version, name}, err
	}
}

func compareWork(c *db.Conn) (rows int, wrong []string, err error) {
	n, bad, err := compare(c, `SELECT doc, version, state, created_at, due_at, expires_at, service, id FROM work`, 8, workRow)
	if err != nil {
		return 0, nil, err
	}
	m, worse, err := compare(c, `SELECT doc, version, expires_at, service, id FROM workers`, 5, workerRow)
	return n + m, slices.Concat(bad, worse), err
}

func compare[T any](c *db.Conn, query string, columns int, row func(string, T) ([]any, error)) (rows int, wrong []string, err error) {
	err = c.Each(query, nil, func(r *sql.Rows) error {
		rows++
		stored, into := make([]any, columns), make([]any, columns)
		for i := range into {
			into[i] = &stored[i]
		}
		if err := r.Scan(into...); err != nil {
			return err
		}
		var document T
		if err := json.Unmarshal([]byte(stored[0].(string)), &document); err != nil {
			return err
		}
		want, err := row("check", document)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(want, stored) {
			wrong = append(wrong, fmt.Sprintf("document says %v, columns %v", want[1:], stored[1:]))
		}
		return nil
	})
	return rows, wrong, err
}
