package sqlite_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db/dbtest"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

func execute(t *testing.T, file *db.DB, query string, args ...any) {
	t.Helper()
	err := file.Write(t.Context(), "execute", func(c *db.Conn) error {
		_, err := c.Exec(query, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestForeignReports: what an agent wrote is not believed to be a report, nor
// to be of the host it names, and hides no other host's.
func TestForeignReports(t *testing.T) {
	racepass.OneGoroutine(t)
	var log bytes.Buffer
	file := dbtest.Open(t, dbtest.File(t), db.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	s := sqlite.New(file)
	const insert = `INSERT INTO reports (host_key, doc) VALUES (?1, ?2)`
	for key, doc := range map[string]string{
		"a": `{"hostKey":"a","assignment":1}`,
		"b": `{"hostKey":"b","assig`,
		"c": `{"hostKey":"c","heartbeatAt":"yesterday"}`,
		"d": `{"hostKey":"a","assignment":7}`,
		"e": ``,
		"g": `{"hostKey":"g","detail":"` + strings.Repeat("x", 1<<20) + `"}`,
		"f": `{"hostKey":"f","assignment":2}`,
	} {
		execute(t, file, insert, key, doc)
	}
	want := map[string]lifecycle.Report{
		"a": {HostKey: "a", Assignment: 1}, "d": {HostKey: "d", Assignment: 7}, "f": {HostKey: "f", Assignment: 2},
	}
	got, err := s.Reports(t.Context(), []string{"a", "b", "c", "d", "e", "f", "g"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	all := map[string]lifecycle.Report{}
	for of := (lifecycle.PageOf{Limit: 2}); ; {
		page, err := s.AllReports(t.Context(), of)
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
	if got := strings.Count(log.String(), "cannot be read"); got != 4 {
		t.Errorf("logged %d unreadable reports, want each of 4 once:\n%s", got, log.String())
	}
}

// TestDamagedRecord: the error names the row and tells nothing of what is in it.
func TestDamagedRecord(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	file := dbtest.Open(t, dbtest.File(t), db.Options{})
	s := sqlite.New(file)
	fill(t, s, 1, unchanged)
	for name, doc := range map[string]string{
		"truncated":    `{"registration":{"secret":"do-not-print-me"`,
		"no JSON":      `do-not-print-me`,
		"a wrong type": `{"cpu":"do-not-print-me"}`,
		"a wrong time": `{"threshold":"do-not-print-me"}`,
	} {
		execute(t, file, `UPDATE instances SET doc = ?1`, doc)
		_, err := s.Instance(t.Context(), hostKey(0))
		if err == nil || !strings.Contains(err.Error(), hostKey(0)) || strings.Contains(err.Error(), "do-not-print-me") {
			t.Errorf("%s: got error %v, want one that names the host and nothing else", name, err)
		}
	}
}

// TestExpiredRowsGo: what the suite allows to linger goes with a write.
func TestExpiredRowsGo(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	path := dbtest.File(t)
	begin := sqlite.New(dbtest.Open(t, path, db.Options{Now: func() time.Time { return began }}))
	fill(t, begin, 4, func(n int, r *lifecycle.Record) {
		if n%2 == 0 {
			r.ExpiresAt = began.Add(time.Second)
		}
	})
	later := sqlite.New(dbtest.Open(t, path, db.Options{Now: func() time.Time { return began.Add(time.Second) }}))
	for range 2 { // the clearing comes after the answer, and so before the next write
		if err := later.DeleteReport(t.Context(), "no-such-host"); err != nil {
			t.Fatal(err)
		}
	}
	page, err := later.ListInstances(t.Context(), lifecycle.Filter{}, lifecycle.PageOf{})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, r := range page.Items {
		keys = append(keys, r.HostKey)
	}
	if diff := cmp.Diff([]string{hostKey(1), hostKey(3)}, keys); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}

// TestDamagedRowsHideNoOther: what sweeps and callers list is everything except the
// damaged rows, which are reported once.
func TestDamagedRowsHideNoOther(t *testing.T) {
	racepass.CoveredBy(t, "TestStore")
	var log bytes.Buffer
	file := dbtest.Open(t, dbtest.File(t), db.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	s := sqlite.New(file)
	fill(t, s, 6, func(_ int, r *lifecycle.Record) { r.DueAt = began })
	for _, id := range []string{"a", "b"} {
		q := lifecycle.Request{Repository: "acme/site", RunID: "1", RequestID: id, DueAt: began}
		if err := s.CreateRequest(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, file, `UPDATE instances SET doc = '{"cpu":"do-not-print-me"}' WHERE host_key IN (?1, ?2)`, hostKey(0), hostKey(3))
	execute(t, file, `UPDATE requests SET doc = 'do-not-print-me' WHERE request_id = 'a'`)

	large := lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageOnDemand}
	lists := map[string]func(of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error){
		"due": func(of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
			return s.DueInstances(t.Context(), began, of)
		},
		"pooled": func(of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
			return s.PooledInstances(t.Context(), "default", large, "acme/site", of)
		},
		"all": func(of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
			return s.ListInstances(t.Context(), lifecycle.Filter{}, of)
		},
		"by key": func(lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
			var keys []string
			for n := range 6 {
				keys = append(keys, hostKey(n))
			}
			records, err := s.Instances(t.Context(), keys)
			return lifecycle.Page[lifecycle.Record]{Items: records}, err
		},
	}
	want := []string{hostKey(1), hostKey(2), hostKey(4), hostKey(5)}
	for name, list := range lists {
		for _, limit := range []int{0, 1, 2, 3, 4} {
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
			if diff := cmp.Diff(want, keys); diff != "" {
				t.Errorf("%s, %d a page (-want +got):\n%s", name, limit, diff)
			}
		}
	}
	due, err := s.DueRequests(t.Context(), began, lifecycle.PageOf{})
	if err != nil || len(due.Items) != 1 || due.Items[0].RequestID != "b" {
		t.Errorf("due requests %+v, %v; want b", due.Items, err)
	}
	if strings.Contains(log.String(), "do-not-print-me") || !strings.Contains(log.String(), hostKey(3)) {
		t.Errorf("the log should name the rows and nothing that is in them:\n%s", log.String())
	}
}

// TestDamagedJobsOfServices: they hide no sound one of any state, on whichever page.
func TestDamagedJobsOfServices(t *testing.T) {
	racepass.OneGoroutine(t)
	file := dbtest.Open(t, dbtest.File(t), db.Options{Now: func() time.Time { return began }})
	s := sqlite.New(file)
	var want, got []string
	for i := range 12 {
		id := fmt.Sprintf("job-%02d", i)
		j := model.NewJob("render", id, nil, model.JobPolicy{QueueTime: time.Hour}, began.Add(time.Duration(i)))
		if i >= 6 {
			j.State = model.JobRunning
		}
		if err := s.CreateWork(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		if i == 1 || i == 2 || i == 7 {
			execute(t, file, `UPDATE work SET doc = 'damaged' WHERE id = ?1`, id)
			continue
		}
		want = append(want, id)
	}
	for of := (lifecycle.PageOf{Limit: 2}); ; {
		page, err := s.ListWork(t.Context(), "render", model.JobStates, of)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range page.Items {
			got = append(got, j.ID)
		}
		if of.After = page.Next; of.After == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}
