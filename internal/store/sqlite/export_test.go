package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
)

// Queries are those whose cost must grow with what they find.
var Queries = map[string]string{
	"instances_by_run":             listingOf(store.InstancesByRun, 1),
	"instances_by_pool":            listingOf(store.InstancesByPool, 1),
	"instances_by_due":             listingOf(store.InstancesByDue, 1),
	"requests_by_due":              listingOf(store.RequestsByDue, 1),
	"events_by_run":                selectEventsOfRun,
	"events_by_instance":           selectEventsOfInstance,
	"events_by_expiry":             selectNewestEvents,
	"sqlite_autoindex_instances_1": statementsOf[store.Instances.ID].selectOne,
	"sqlite_autoindex_requests_1":  listingOf(store.RequestsByRun, 1),
	"sqlite_autoindex_reports_1":   selectReports,
	"INTEGER PRIMARY KEY":          selectEvents,
	"sqlite_autoindex_webhooks_1":  statementsOf[store.Webhooks.ID].selectOne,
	"webhooks_by_due":              listingOf(store.WebhooksByDue, 1),
	"jobs_by_run":                  listingOf(store.JobsByRun, 1),
	"jobs_by_pool":                 listingOf(store.JobsByPool, 1),
	"jobs_by_due":                  listingOf(store.JobsByDue, 1),
	"jobs USING INTEGER PRIMARY":   statementsOf[store.Jobs.ID].selectOne,
	"sqlite_autoindex_turns_1":     statementsOf[store.SlotTables.ID].selectOne,
	"sqlite_autoindex_guards_1":    statementsOf[store.Breakers.ID].selectOne,
	"sqlite_autoindex_services_1":  statementsOf[store.Services.ID].selectOne,
	"work_by_age":                  keysOf(store.WorkByState),
	"COVERING INDEX work_by_age":   countOf(store.WorkByState),
	"work_by_age (service=? AND state=? AND (created_at,id)>(?,?))": listingOf(store.WorkByState, len(model.JobStates)),
	"work_by_due":                listingOf(store.WorkByDue, 1),
	"sqlite_autoindex_work_1":    statementsOf[store.Work.ID].selectOne,
	"sqlite_autoindex_workers_1": listingOf(store.WorkersByID, 1),
}

// SelectAllReports searches no index.
const SelectAllReports = selectAll

// queryOf asks for rows of an index as the store does.
func queryOf(x *store.Index, partitions int) store.Query {
	q := store.Query{Index: x}
	for range partitions {
		q.Partitions = append(q.Partitions, make([]string, len(x.By)))
	}
	if x.Order == store.Due {
		q.UpTo = time.Unix(1, 0)
	}
	return q
}

func listingOf(x *store.Index, partitions int) string {
	l := selecting(statementsOf[x.Kind().ID].key+", doc", queryOf(x, partitions), make([]any, len(order(x))), 1)
	return l.text.String()
}

func keysOf(x *store.Index) string {
	l := selecting(joined(x.Kind().KeyColumns), queryOf(x, 1), make([]any, len(order(x))), 1)
	return l.text.String()
}

func countOf(x *store.Index) string {
	q := queryOf(x, 1)
	return counting(q, q.Partitions[0], 1).text.String()
}

// Disagreements are the rows whose document and columns do not say the same,
// and whatever else is wrong with the file.
func (s *Store) Disagreements(ctx context.Context) (wrong []string, rows int, err error) {
	err = s.db.Read(ctx, "check", func(c *db.Conn) error {
		var verdict string
		if err := c.Get("PRAGMA integrity_check", nil, &verdict); err != nil || verdict != "ok" {
			return fmt.Errorf("integrity check: %s: %w", verdict, err)
		}
		for _, k := range store.Kinds {
			n, bad, err := compare(c, k)
			rows, wrong = rows+n, append(wrong, bad...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return wrong, rows, err
}

func compare(c *db.Conn, k *store.Kind) (rows int, wrong []string, err error) {
	columns := statementsOf[k.ID].columns
	query := "SELECT " + strings.Join(columns, ", ") + " FROM " + k.SQL.Name
	if k.SQL.Prefix != "" {
		query += " WHERE " + k.KeyColumns[0] + " LIKE '" + k.SQL.Prefix + "%'"
	}
	err = c.Each(query, nil, func(r *sql.Rows) error {
		rows++
		stored, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range into {
			into[i] = &stored[i]
		}
		if err := r.Scan(into...); err != nil {
			return err
		}
		row := k.New(store.Key{})
		if err := json.Unmarshal([]byte(stored[0].(string)), row); err != nil {
			return err
		}
		want, err := arguments("check", k, row)
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
