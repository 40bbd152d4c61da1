package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/token"
)

type (
	report     = lifecycle.Report
	reportPage = lifecycle.Page[lifecycle.Report]
)

const reportsIndex = "reports"

// A report that is much longer than a sound one can be is not even read.
const (
	readable      = `iif(octet_length(doc) <= 65536, doc, 'longer than 64 KiB')`
	selectReports = `SELECT host_key, ` + readable + ` FROM reports WHERE host_key IN (SELECT value FROM json_each(?1))`
	selectAll     = `SELECT host_key, ` + readable + ` FROM reports WHERE host_key > ?1 ORDER BY host_key LIMIT ?2 + 0`
	deleteReport  = `DELETE FROM reports WHERE host_key = ?1`
)

// reportRow is one row of the agents' table. Its key is the store's word, its document the agent's.
type reportRow struct {
	hostKey string
	report  report
	sound   bool
}

// Reports reads the reports of the hosts that have one, by host key.
func (s *Store) Reports(ctx context.Context, hostKeys []string) (map[string]report, error) {
	const what = "read reports"
	keys, err := json.Marshal(hostKeys)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	rows, err := s.readReports(ctx, what, len(hostKeys), selectReports, string(keys))
	if err != nil {
		return nil, err
	}
	found := make(map[string]report, len(rows))
	for _, row := range rows {
		if row.sound {
			found[row.hostKey] = row.report
		}
	}
	return found, nil
}

// AllReports lists every report, in order of host key.
func (s *Store) AllReports(ctx context.Context, of lifecycle.PageOf) (reportPage, error) {
	after, err := token.Parse(reportsIndex, of.After, 1)
	if err != nil {
		return reportPage{}, err
	}
	if after == nil {
		after = []string{""}
	}
	rows, err := s.readReports(ctx, "list reports", 0, selectAll, after[0], oneMore(of))
	if err != nil {
		return reportPage{}, err
	}
	var page reportPage
	if len(rows) > of.Size() {
		rows = rows[:of.Size()]
		page.Next = token.New(reportsIndex, rows[len(rows)-1].hostKey)
	}
	for _, row := range rows {
		if row.sound {
			page.Items = append(page.Items, row.report)
		}
	}
	return page, nil
}

// readReports reads rows of the agents' table, about as many as expected. What an agent wrote is
// untrusted: a document that is no report counts as none, and is logged.
func (s *Store) readReports(ctx context.Context, what string, expected int, query string, args ...any) (found []reportRow, err error) {
	err = s.db.Read(ctx, what, func(c *db.Conn) error {
		found = make([]reportRow, 0, expected)
		var text sql.RawBytes
		return c.Each(query, args, func(rows *sql.Rows) error {
			var row reportRow
			if err := rows.Scan(&row.hostKey, &text); err != nil {
				return err
			}
			err := decode(text, &row.report)
			row.sound = err == nil
			row.report.HostKey = row.hostKey
			s.logUnsound(row, err)
			found = append(found, row)
			return nil
		})
	})
	return found, err
}

// logUnsound logs a report that cannot be read, once until it can be again:
// reports are read several times a second.
func (s *Store) logUnsound(row reportRow, err error) {
	if row.sound {
		s.unsound.Delete(row.hostKey)
		return
	}
	if _, logged := s.unsound.LoadOrStore(row.hostKey, true); !logged {
		s.db.Logger().Warn("ignoring a report that cannot be read", logkey.Instance, row.hostKey, logkey.Error, damaged("read report", err))
	}
}

// DeleteReport removes a report; none is no error.
func (s *Store) DeleteReport(ctx context.Context, hostKey string) error {
	return s.db.Write(ctx, "delete report of "+hostKey, func(c *db.Conn) error {
		_, err := c.Exec(deleteReport, hostKey)
		return err
	})
}
