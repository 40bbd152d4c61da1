package sqlite_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestFileOfTheFirstVersion: it is opened with all that was in it, by an agent
// too, and takes what came since.
func TestFileOfTheFirstVersion(t *testing.T) {
	racepass.OneGoroutine(t)
	for _, light := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "remuda.db")
		firstVersion(t, path)
		if light {
			if err := open(t, path, db.Options{Light: true}).Close(); err != nil {
				t.Fatal(err)
			}
		}
		s := sqlite.New(open(t, path, db.Options{Now: func() time.Time { return began }}))
		old, err := s.Instance(t.Context(), "old")
		if err != nil {
			t.Fatal(err)
		}
		want := lifecycle.Record{HostKey: "old", InstanceID: "i-old", State: lifecycle.StateRunning, RunID: "1", Version: 3, DueAt: began}
		if diff := cmp.Diff(want, old); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
		old.JobsOf = "acme"
		if _, err := s.UpdateInstance(t.Context(), old); err != nil {
			t.Error(err)
		}
		j := lifecycle.Job{ID: 1, Repository: "acme/site", RunID: "1", Pool: "small", State: lifecycle.JobWaiting, QueuedAt: began}
		if err := s.CreateJob(t.Context(), j); err != nil {
			t.Error(err)
		}
		page, err := s.WaitingJobs(t.Context(), "small", lifecycle.PageOf{})
		if err != nil || len(page.Items) != 1 {
			t.Errorf("waiting jobs: got %v and error %v, want the one", page.Items, err)
		}
		h, err := s.EventsOfInstance(t.Context(), "i-old", time.Time{}, 10)
		if err != nil || len(h.Events) != 1 || h.Events[0].Reason != "launched" {
			t.Errorf("history: got %+v and error %v, want the one event", h, err)
		}
		idle, err := s.PooledInstances(t.Context(), "build", lifecycle.QueueName{ResourceClass: "large", UsageClass: "spot"}, "acme/app", lifecycle.PageOf{})
		if err != nil || len(idle.Items) != 1 || idle.Items[0].HostKey != "idle" {
			t.Fatalf("idle hosts of the pool: got %v and error %v, want the one", idle.Items, err)
		}
		if _, err := s.UpdateInstance(t.Context(), idle.Items[0]); err != nil {
			t.Error(err)
		}
		if wrong, rows, err := s.Disagreements(t.Context()); err != nil || len(wrong) > 0 || rows != 3 {
			t.Errorf("%d rows, error %v, and these disagree: %v", rows, err, wrong)
		}
	}
}

// TestJobsOfServicesOfAnOlderFile: those that were there are found, listed and
// ended, whichever columns the file has them in.
func TestJobsOfServicesOfAnOlderFile(t *testing.T) {
	racepass.OneGoroutine(t)
	for name, table := range map[string]struct{ change, columns string }{
		"of the fifth version": {"", "open_state"},
		"with states before their version": {`DROP INDEX work_by_age; ALTER TABLE work RENAME COLUMN open_state TO state;
			CREATE INDEX work_by_age ON work (service, state, created_at, id)`, "state"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "remuda.db")
			olderWork(t, path, table.change, table.columns)
			file := open(t, path, db.Options{Now: func() time.Time { return began }})
			s := sqlite.New(file)
			page, err := s.ListWork(t.Context(), "render", model.JobStates, lifecycle.PageOf{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, j := range page.Items {
				got = append(got, string(j.State)+" "+j.ID)
			}
			if diff := cmp.Diff([]string{"failed c", "running b", "waiting a"}, got); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			ids, err := s.WaitingWork(t.Context(), "render", 10)
			if diff := cmp.Diff([]string{"a"}, ids); err != nil || diff != "" {
				t.Errorf("error %v, waiting (-want +got):\n%s", err, diff)
			}
			due, err := s.DueWork(t.Context(), began, lifecycle.PageOf{})
			if err != nil || len(due.Items) != 1 {
				t.Fatalf("due: got %v and error %v, want the one that runs", due.Items, err)
			}
			ended, err := s.UpdateWork(t.Context(), due.Items[0].CheckDeadline(model.JobPolicy{}, began))
			if err != nil || ended.State != model.JobFailed {
				t.Errorf("the silent one is %s, error %v", ended.State, err)
			}
			waits, err := s.Work(t.Context(), "render", "a")
			if diff := cmp.Diff(waits, waits.CheckDeadline(model.JobPolicy{}, began)); err != nil || diff != "" {
				t.Errorf("error %v, one that waits without an end is changed:\n%s", err, diff)
			}
			if n, err := s.CountWork(t.Context(), "render", 10); err != nil || n != (model.JobCount{Waiting: 1}) {
				t.Errorf("counted %+v, error %v", n, err)
			}
			execute(t, file, `DELETE FROM work WHERE id = 'damaged'`)
			if wrong, rows, err := s.Disagreements(t.Context()); err != nil || len(wrong) > 0 || rows != 3 {
				t.Errorf("%d rows, error %v, and these disagree: %v", rows, err, wrong)
			}
		})
	}
}

// olderWork makes a file with jobs of services as the fifth version did.
func olderWork(t *testing.T, path, change, state string) {
	t.Helper()
	file, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, name := range []string{"schema", "jobs", "services", "events", "work"} {
		text, err := readMigration(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Exec(string(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := file.Exec(change + "; PRAGMA application_id = 0x726d6461; PRAGMA user_version = 5; PRAGMA journal_mode = WAL"); err != nil {
		t.Fatal(err)
	}
	old := began.Add(-time.Hour)
	for i, j := range []model.Job{
		{ID: "c", State: model.JobFailed, EndedAt: old, ExpiresAt: began.Add(time.Hour)},
		{ID: "b", State: model.JobRunning, WorkerID: "w", Attempt: 1, ActivityAt: old, DueAt: old.Add(time.Minute)},
		{ID: "a", State: model.JobWaiting},
		{ID: "damaged", State: model.JobWaiting},
	} {
		j.Service, j.Version, j.CreatedAt = "render", 1, old.Add(time.Duration(i)*time.Second)
		doc, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		if j.ID == "damaged" {
			doc = doc[1:]
		}
		open := sql.NullString{String: string(j.State), Valid: !j.State.Ended() || state == "state"}
		nanos := func(at time.Time) sql.NullInt64 { return sql.NullInt64{Int64: at.UnixNano(), Valid: !at.IsZero()} }
		_, err = file.Exec(`INSERT INTO work (service, id, version, `+state+`, created_at, due_at, expires_at, doc) VALUES (?, ?, 1, ?, ?, ?, ?, ?)`,
			j.Service, j.ID, open, nanos(j.CreatedAt), nanos(j.DueAt), nanos(j.ExpiresAt), string(doc))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// firstVersion makes a file as the first version of the program did.
func firstVersion(t *testing.T, path string) {
	t.Helper()
	schema, err := readMigration("schema")
	if err != nil {
		t.Fatal(err)
	}
	file, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, text := range []string{
		string(schema), "PRAGMA application_id = 0x726d6461", "PRAGMA user_version = 1", "PRAGMA journal_mode = WAL",
	} {
		if _, err := file.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	_, err = file.Exec(`INSERT INTO instances (host_key, version, state, run_id, resource_class, usage_class, trust_key, due_at, doc)
		VALUES ('old', 3, 'running', '1', '', '', '', ?1,
			json_object('hostKey', 'old', 'instanceId', 'i-old', 'state', 'running', 'runId', '1', 'version', 3, 'dueAt', ?2))`,
		began.UnixNano(), began.Format(time.RFC3339Nano))
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Exec(`INSERT INTO instances (host_key, version, state, resource_class, usage_class, trust_key, pooled_at, doc)
		VALUES ('idle', 1, 'idle', 'large', 'spot', 'acme/app', ?1,
			json_object('hostKey', 'idle', 'pool', 'build', 'state', 'idle', 'resourceClass', 'large', 'usageClass', 'spot',
				'trustKey', 'acme/app', 'version', 1, 'pooledAt', ?2))`,
		began.UnixNano(), began.Format(time.RFC3339Nano))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []string{`{"instanceId":"i-old","reason":"launched","at":"` + began.Format(time.RFC3339) + `"}`, `{"reason":"of no host"}`, "{damaged"} {
		if _, err := file.Exec(`INSERT INTO events (expires_at, doc) VALUES (?1, ?2)`, began.Add(time.Hour).UnixNano(), doc); err != nil {
			t.Fatal(err)
		}
	}
}

// readMigration reads the migration of a name, whichever version it is.
func readMigration(name string) ([]byte, error) {
	found, err := filepath.Glob(filepath.Join("db", "migrations", "*_"+name+".sql"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("migration %s: found %q: %w", name, found, err)
	}
	return os.ReadFile(found[0])
}
