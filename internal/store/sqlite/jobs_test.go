package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
	"github.com/remuda-ci/remuda/internal/store/token"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// waitingJob is in every index.
func waitingJob(id int64) lifecycle.Job {
	return lifecycle.Job{
		ID: id, Repository: "acme/site", RunID: "1", Pool: "small", State: lifecycle.JobWaiting, QueuedAt: began, DueAt: began,
	}
}

func dueWebhook(id string) lifecycle.Webhook {
	return lifecycle.Webhook{DeliveryID: id, Action: "queued", ReceivedAt: began, DueAt: began}
}

// TestDamagedJobsHideNoOther: a list has everything except the damaged rows, which
// are reported once, without their content.
func TestDamagedJobsHideNoOther(t *testing.T) {
	racepass.OneGoroutine(t)
	var log bytes.Buffer
	file := dbtest.Open(t, dbtest.File(t), db.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	s := sqlite.New(file)
	for n := range 4 {
		if err := errors.Join(s.CreateJob(t.Context(), waitingJob(int64(n))), s.CreateWebhook(t.Context(), dueWebhook(fmt.Sprint(n)))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.UpdateSlotTable(t.Context(), slots.Table{Pool: "small"}); err != nil {
		t.Fatal(err)
	}
	execute(t, file, `UPDATE jobs SET doc = '{"labels":"do-not-print-me"}' WHERE id IN (0, 2)`)
	execute(t, file, `UPDATE webhooks SET doc = 'do-not-print-me' WHERE delivery_id = '1'`)
	execute(t, file, `UPDATE turns SET doc = '{"open":"do-not-print-me"}'`)

	for range 2 {
		waiting, err := s.WaitingJobs(t.Context(), "small", lifecycle.PageOf{})
		due, dueErr := s.DueJobs(t.Context(), began, lifecycle.PageOf{})
		open, openErr := s.OpenJobsOfRun(t.Context(), "acme/site", "1")
		webhooks, webhooksErr := s.DueWebhooks(t.Context(), began, lifecycle.PageOf{})
		if err := errors.Join(err, dueErr, openErr, webhooksErr); err != nil {
			t.Fatal(err)
		}
		if len(waiting.Items) != 2 || len(due.Items) != 2 || len(open) != 2 || len(webhooks.Items) != 3 {
			t.Errorf("got %d waiting, %d due and %d open jobs, want 2 of each, and %d webhooks, want 3",
				len(waiting.Items), len(due.Items), len(open), len(webhooks.Items))
		}
	}
	_, jobErr := s.Job(t.Context(), 2)
	_, webhookErr := s.Webhook(t.Context(), "1")
	_, turnsErr := s.SlotTable(t.Context(), "small")
	for name, err := range map[string]error{"job 2": jobErr, "webhook 1": webhookErr, "pool small": turnsErr} {
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "do-not-print-me") {
			t.Errorf("read of the damaged row: got error %v, want one that names %s and nothing that is in it", err, name)
		}
	}
	if strings.Contains(log.String(), "do-not-print-me") || strings.Count(log.String(), "jobs by pool") != 2 {
		t.Errorf("the log should name each row once and nothing that is in it:\n%s", log.String())
	}
}

// TestTokensOfJobs: the id in them is a number.
func TestTokensOfJobs(t *testing.T) {
	racepass.OneGoroutine(t)
	s := sqlite.New(dbtest.Open(t, dbtest.File(t), db.Options{}))
	_, err := s.WaitingJobs(t.Context(), "small", lifecycle.PageOf{After: token.New("jobs by pool", "1", "first")})
	if !errors.Is(err, lifecycle.ErrPageToken) {
		t.Errorf("got error %v, want %v", err, lifecycle.ErrPageToken)
	}
}

// TestExpiredJobsGo: what the suite allows to linger goes with a write.
func TestExpiredJobsGo(t *testing.T) {
	racepass.OneGoroutine(t)
	path := dbtest.File(t)
	s := sqlite.New(dbtest.Open(t, path, db.Options{Now: func() time.Time { return began }}))
	for n := range 4 {
		j, h := waitingJob(int64(n)), dueWebhook(fmt.Sprint(n))
		j.ExpiresAt = began.Add(time.Duration(n+1) * time.Second)
		h.ExpiresAt = j.ExpiresAt
		err := errors.Join(s.CreateJob(t.Context(), j), s.CreateWebhook(t.Context(), h), s.SeeOnce(t.Context(), "token", fmt.Sprint(n), j.ExpiresAt))
		if err != nil {
			t.Fatal(err)
		}
	}
	file := dbtest.Open(t, path, db.Options{Now: func() time.Time { return began.Add(time.Hour) }})
	later := sqlite.New(file)
	for range 2 { // the clearing comes after the answer, and so before the next write
		if err := later.DeleteReport(t.Context(), "no-such-host"); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"jobs", "webhooks", "seen"} {
		if got := rowsOf(t, file, table); got != 0 {
			t.Errorf("%d expired rows are left in %s", got, table)
		}
	}
}

func rowsOf(t *testing.T, file *db.DB, table string) (rows int) {
	t.Helper()
	err := file.Read(t.Context(), "count", func(c *db.Conn) error {
		rows = 0
		return c.Each("SELECT 1 FROM "+table, nil, func(*sql.Rows) error { rows++; return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestFullDiskKeepsWhatWasAcknowledged: a webhook that was not written is not
// acknowledged, and one that was is there.
func TestFullDiskKeepsWhatWasAcknowledged(t *testing.T) {
	racepass.OneGoroutine(t)
	file := dbtest.Open(t, dbtest.File(t), db.Options{})
	s := sqlite.New(file)
	limit := func(pages int) {
		t.Helper()
		err := file.Write(t.Context(), "limit", func(c *db.Conn) error {
			var now int64
			return c.Get(fmt.Sprintf("PRAGMA max_page_count = %d", pages), nil, &now)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit(1) // no more than there are
	acknowledged := 0
	var err error
	for ; err == nil && acknowledged < 10_000; acknowledged++ {
		h := dueWebhook(fmt.Sprintf("%05d", acknowledged))
		h.Reason = strings.Repeat("x", 500)
		err = s.CreateWebhook(t.Context(), h)
	}
	acknowledged--
	if !errors.Is(err, lifecycle.ErrUnavailable) || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("got error %v, want one that is unavailable and says what to do", err)
	}
	if got := rowsOf(t, file, "webhooks"); got != acknowledged {
		t.Errorf("%d webhooks were acknowledged, %d are there", acknowledged, got)
	}
	limit(10_000)
	if err := s.CreateWebhook(t.Context(), dueWebhook(fmt.Sprintf("%05d", acknowledged))); err != nil {
		t.Errorf("with space again: %v", err)
	}
}
