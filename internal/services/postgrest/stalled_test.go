package postgrest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/postgrest"
)

// table is the table "jobs" behind an API that knows as much of PostgREST's filters as FailStalled uses. An unknown
// column is status 400, as there.
type table struct {
	mu   sync.Mutex
	rows []map[string]any
	// readOnly refuses updates, and down all requests.
	readOnly, down bool
	// between is called after the rows were listed.
	between func()
	asked   []string
}

func (d *table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, r.Method)
	switch {
	case d.down:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case r.Method == http.MethodPatch && d.readOnly:
		w.WriteHeader(http.StatusForbidden)
		return
	}
	query := r.URL.Query()
	key, limit := query.Get("select"), 1000
	if l := query.Get("limit"); l != "" {
		limit, _ = strconv.Atoi(l)
	}
	var found []map[string]any
	for _, row := range d.rows {
		match, known := matches(row, query)
		if !known {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if match && len(found) < limit {
			found = append(found, row)
		}
	}
	answer := []map[string]any{}
	var change map[string]any
	if r.Method == http.MethodPatch {
		text, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(text, &change)
	}
	for _, row := range found {
		maps.Copy(row, change)
		answer = append(answer, map[string]any{key: row[key]})
	}
	if r.Method == http.MethodPatch && r.Header.Get("Prefer") != "return=representation" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
	if d.between != nil && r.Method == http.MethodGet {
		d.between()
	}
}

// matches reports whether a row satisfies the filters of a query, and whether it has all their columns.
func matches(row map[string]any, query map[string][]string) (match, known bool) {
	for column, filters := range query {
		if slices.Contains([]string{"select", "order", "limit"}, column) {
			continue
		}
		value, ok := row[column]
		if !ok {
			return false, false
		}
		op, want, _ := strings.Cut(filters[0], ".")
		text := fmt.Sprint(value)
		switch op {
		case "eq":
			ok = text == want
		case "lt":
			ok = value != nil && text < want
		case "in":
			ok = strings.Contains(want, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)+`"`)
		}
		if !ok {
			return false, true
		}
	}
	return true, true
}

func stalledQueue(t *testing.T, d *table) *postgrest.Queue {
	t.Helper()
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	return postgrest.New(postgrest.Options{
		URL: server.URL, Queued: "jobs?status=eq.queued", Busy: "jobs?status=eq.running",
		Stalled: &postgrest.Stalled{Column: "heartbeat_at", After: 5 * time.Minute, Key: "id", StateColumn: "status", Failed: "failed"},
	})
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// job is a row whose worker reported that long before noon.
func job(id any, status string, ago time.Duration) map[string]any {
	return map[string]any{"id": id, "status": status, "heartbeat_at": noon.Add(-ago).Format("2006-01-02T15:04:05.000Z")}
}

func (d *table) states() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	states := map[string]string{}
	for _, row := range d.rows {
		states[fmt.Sprint(row["id"])] = fmt.Sprint(row["status"])
	}
	return states
}

// look calls FailStalled as the sweep does at noon, after it did the same a minute before.
func look(t *testing.T, q *postgrest.Queue) ([]string, error) {
	t.Helper()
	if _, err := q.FailStalled(t.Context(), "render", noon.Add(-time.Minute), false); err != nil {
		return nil, err
	}
	return q.FailStalled(t.Context(), "render", noon, false)
}

func TestJobsOfSilentWorkersFail(t *testing.T) {
	t.Parallel()
	quoted := `a "quoted", \ (key) + &`
	d := &table{rows: []map[string]any{
		job(1, "running", 10*time.Minute), job(2, "running", 4*time.Minute), job(3, "queued", time.Hour), job(4, "done", time.Hour),
		job(quoted, "running", 6*time.Minute), {"id": 6, "status": "running", "heartbeat_at": nil},
	}}
	got, err := look(t, stalledQueue(t, d))
	if diff := cmp.Diff([]string{"1", quoted}, got); diff != "" || err != nil {
		t.Errorf("error %v, failed (-want +got):\n%s", err, diff)
	}
	want := map[string]string{"1": "failed", "2": "running", "3": "queued", "4": "done", quoted: "failed", "6": "running"}
	if diff := cmp.Diff(want, d.states()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// A job whose worker reports, or which ends, between the two requests stays as it is.
func TestAJobThatReportsInBetweenIsNotFailed(t *testing.T) {
	t.Parallel()
	d := &table{rows: []map[string]any{job(1, "running", 10*time.Minute), job(2, "running", 10*time.Minute), job(3, "running", 10*time.Minute)}}
	q := stalledQueue(t, d)
	if _, err := q.FailStalled(t.Context(), "render", noon.Add(-time.Minute), false); err != nil {
		t.Fatal(err)
	}
	d.between = func() {
		d.rows[0]["heartbeat_at"] = noon.Format("2006-01-02T15:04:05.000Z")
		d.rows[1]["status"] = "done"
	}
	got, err := q.FailStalled(t.Context(), "render", noon, false)
	if diff := cmp.Diff([]string{"3"}, got); diff != "" || err != nil {
		t.Errorf("error %v, failed (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]string{"1": "running", "2": "done", "3": "failed"}, d.states()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// After an outage of the table all workers look silent: they could not report.
func TestNothingFailsRightAfterAnOutage(t *testing.T) {
	t.Parallel()
	d := &table{rows: []map[string]any{job(1, "running", 10*time.Minute)}}
	q := stalledQueue(t, d)
	at := func(after time.Duration) (n int, err error) {
		got, err := q.FailStalled(t.Context(), "render", noon.Add(after), false)
		return len(got), err
	}
	d.rows[0]["heartbeat_at"] = noon.Format("2006-01-02T15:04:05.000Z")
	for _, step := range []struct {
		after time.Duration
		down  bool
		want  int
	}{{0, false, 0}, {time.Minute, false, 0}, {2 * time.Minute, true, 0}, {20 * time.Minute, true, 0}, {21 * time.Minute, false, 0}, {21*time.Minute + 30*time.Second, false, 0},
		{40 * time.Minute, false, 0}, {41 * time.Minute, false, 1}} {
		d.down = step.down
		n, err := at(step.after)
		if n != step.want || errors.Is(err, lifecycle.ErrUnavailable) != step.down {
			t.Errorf("after %s: %d jobs failed, want %d; error %v", step.after, n, step.want, err)
		}
	}
}

func TestDryOnlyNamesStalledJobs(t *testing.T) {
	t.Parallel()
	d := &table{rows: []map[string]any{job(1, "running", 10*time.Minute)}}
	got, err := stalledQueue(t, d).FailStalled(t.Context(), "render", noon, true)
	if diff := cmp.Diff([]string{"1"}, got); diff != "" || err != nil || slices.Contains(d.asked, http.MethodPatch) {
		t.Errorf("error %v, asked %v, would fail (-want +got):\n%s", err, d.asked, diff)
	}
}

func TestManyStalledJobsFailInPages(t *testing.T) {
	t.Parallel()
	d := &table{}
	for i := range 120 {
		d.rows = append(d.rows, job(i, "running", time.Hour))
	}
	q := stalledQueue(t, d)
	var got []int
	for i := range 5 {
		failed, err := q.FailStalled(t.Context(), "render", noon.Add(time.Duration(i)*time.Minute), false)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, len(failed))
	}
	if diff := cmp.Diff([]int{0, 50, 50, 20, 0}, got); diff != "" {
		t.Errorf("jobs that failed (-want +got):\n%s", diff)
	}
}

func TestATableThatCannotHaveStalledJobs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		table *table
		says  string
	}{
		"no column":     {&table{rows: []map[string]any{{"id": 1, "status": "running"}}}, "the table must have the columns heartbeat_at, id and status, and the last must take the value failed; else have stalled.after be 0s"},
		"no permission": {&table{rows: []map[string]any{job(1, "running", time.Hour)}, readOnly: true}, "status 403; give a token that may read and update the table, or have stalled.after be 0s"},
		"a long key":    {&table{rows: []map[string]any{job(strings.Repeat("x", 101), "running", time.Hour)}}, "no number or text of at most 100 bytes"},
		"an odd key":    {&table{rows: []map[string]any{job([]int{1}, "running", time.Hour)}}, "column id of a row holds no number or text"},
	} {
		got, err := look(t, stalledQueue(t, tt.table))
		if len(got) > 0 || !errors.Is(err, lifecycle.ErrRefused) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: failed %v, error %v", name, got, err)
		}
	}
}

func TestALargeAnswerIsRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("[]" + strings.Repeat(" ", 100<<10)))
	}))
	t.Cleanup(server.Close)
	q := postgrest.New(postgrest.Options{URL: server.URL, Queued: "jobs", Busy: "jobs", Stalled: &postgrest.Stalled{Column: "c", After: time.Minute, Key: "id"}})
	if _, err := q.FailStalled(t.Context(), "render", noon, false); !errors.Is(err, lifecycle.ErrRefused) {
		t.Errorf("got error %v", err)
	}
}
