package history_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/history"
)

func at(hour, minute, second int) time.Time {
	return time.Date(2026, 11, 2, hour, minute, second, 0, time.UTC)
}

func read(t *testing.T, text string) history.History {
	t.Helper()
	h, err := history.Read("it", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestCSV: columns come in any order, those that are not known are passed over, and jobs are in the order of their creation.
func TestCSV(t *testing.T) {
	t.Parallel()
	got := read(t, `completed_at,started_at,created_at,repository,labels,team,run_id,job_id
2026-11-02T09:05:20Z,2026-11-02T09:00:20Z,2026-11-02T09:00:00Z,acme/app,self-hosted remuda-large,core,7,42
2026-11-02T09:01:00+01:00,2026-11-02T08:00:30Z,2026-11-02T08:00:00Z,acme/lib,,,,
,2026-11-02T09:00:20Z,2026-11-02T09:00:00Z,acme/app,,,,
,,2026-11-02T09:00:00Z,acme/app,,,,
2026-11-02T09:00:00Z,2026-11-02T09:00:20Z,2026-11-02T09:00:00Z,acme/app,,,,
2026-11-02T10:00:10Z,2026-11-02T10:00:00Z,,acme/app,,,,
2026-12-07T10:00:01Z,2026-11-02T10:00:00Z,,acme/app,,,,
2026-11-02T09:05:20Z,2026-11-02T09:00:20Z,2026-11-02T09:05:21Z,acme/app,,,,43
`)
	want := history.History{
		Jobs: []history.Job{
			{Repository: "acme/lib", Created: at(8, 0, 0), Started: at(8, 0, 30), Completed: at(8, 1, 0)},
			{ID: 42, RunID: "7", Repository: "acme/app", Labels: []string{"self-hosted", "remuda-large"}, Created: at(9, 0, 0), Started: at(9, 0, 20), Completed: at(9, 5, 20)},
			{Repository: "acme/app", Created: at(10, 0, 0), Started: at(10, 0, 0), Completed: at(10, 0, 10)},
		},
		Unstarted: 1, Open: 1, Backward: 1, Long: 1, Copies: 1,
	}
	if diff := cmp.Diff(want, got, equalLabels); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if j := got.Jobs[1]; j.Took() != 5*time.Minute || j.Waited() != 20*time.Second {
		t.Errorf("it took %s and waited %s", j.Took(), j.Waited())
	}
	if h := read(t, "repository,created_at,started_at,completed_at,job_id\n"+strings.Repeat("acme/app,2026-11-02T09:00:00Z,2026-11-02T09:00:00Z,2026-11-02T09:00:10Z,7\n", 2)); len(h.Jobs) != 1 {
		t.Errorf("a job that is there twice counts %d times", len(h.Jobs))
	}
	if n := len(got.LeftOut()); n != 5 {
		t.Errorf("%d sentences about what is left out, want 5: %q", n, got.LeftOut())
	}
}

// equalLabels: no labels are the same as an empty list of them.
var equalLabels = cmp.Transformer("labels", func(labels []string) string { return strings.Join(labels, " ") })

// TestWrittenAndRead: what Write writes is read as it was.
func TestWrittenAndRead(t *testing.T) {
	t.Parallel()
	want := []history.Job{
		{ID: 1, RunID: "7", Repository: "acme/app", Labels: []string{"a", "b"}, Created: at(9, 0, 0), Started: at(9, 0, 20), Completed: at(9, 5, 20)},
		{Repository: "acme/lib", Created: at(9, 1, 0), Started: at(9, 1, 0), Completed: at(9, 2, 0)},
	}
	var b bytes.Buffer
	if err := errors.Join(history.WriteHeading(&b), history.Write(&b, want...)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read(t, b.String()).Jobs, equalLabels); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

// TestWhatWorkflowsSay does not make a file that cannot be read: a label is one word, on one line, and no time is of another age.
func TestWhatWorkflowsSay(t *testing.T) {
	t.Parallel()
	j := history.Job{
		ID: 1, Repository: "acme/app", Labels: append([]string{"remuda large\r\nx", " ", strings.Repeat("a", 300), "a,\"b\""}, strings.Split(strings.Repeat("c ", 70), " ")...),
		Created: time.Unix(0, 0), Started: at(9, 0, 20), Completed: at(9, 5, 20),
	}
	var b bytes.Buffer
	if err := errors.Join(history.WriteHeading(&b), history.Write(&b, j)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want 2: a file that is cut off ends with whole rows", n)
	}
	got := read(t, b.String()).Jobs[0]
	if len(got.Labels) != 64 || got.Labels[0] != "remuda_large_x" || got.Labels[1] != `a,"b"` || !got.Created.Equal(got.Started) {
		t.Errorf("%+v", got)
	}
}

// TestDeliveries: those of a job count together, in any order and in any of the three forms. Others than those of jobs do not count, and a job
// that was skipped had no runner.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	got := read(t, strings.ReplaceAll(`{"action":"completed","workflow_job":{"id":5,"run_id":7,"labels":["remuda-small"],"status":"completed","runner_id":3,"created_at":"2026-11-02T09:00:00Z","started_at":"2026-11-02T09:00:20Z","completed_at":"2026-11-02T09:05:20Z"},REPO}
{"event":"workflow_job","payload":{"action":"queued","workflow_job":{"id":5,"run_id":7,"labels":["remuda-small"],"status":"queued","created_at":"2026-11-02T09:00:00Z","started_at":"2026-11-02T09:00:00Z"},REPO}}

{"action":"completed","workflow_run":{"id":7},REPO}
{"id":1,"request":{"headers":{},"payload":{"action":"in_progress","workflow_job":{"id":6,"run_id":7,"labels":[],"status":"in_progress","runner_id":4,"created_at":"2026-11-02T09:10:00Z","started_at":"2026-11-02T09:10:05Z"},REPO}}}
{"action":"completed","workflow_job":{"id":8,"run_id":7,"labels":[],"status":"completed","conclusion":"skipped","runner_id":null,"created_at":"2026-11-02T09:10:00Z","started_at":"2026-11-02T09:10:00Z","completed_at":"2026-11-02T09:10:00Z"},REPO}
`, "REPO", `"repository":{"full_name":"acme/app"}`))
	want := history.History{
		Jobs: []history.Job{
			{ID: 5, RunID: "7", Repository: "acme/app", Labels: []string{"remuda-small"}, Created: at(9, 0, 0), Started: at(9, 0, 20), Completed: at(9, 5, 20)},
		},
		Unstarted: 1, Open: 1,
	}
	if diff := cmp.Diff(want, got, equalLabels); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWrongHistories: each error says which line is wrong, and how.
func TestWrongHistories(t *testing.T) {
	t.Parallel()
	const heading = "repository,created_at,started_at,completed_at,job_id,run_id,labels\n"
	good := heading + "acme/app,2026-11-02T09:00:00Z,2026-11-02T09:00:00Z,2026-11-02T09:00:00Z,,,\n"
	for name, test := range map[string]struct{ text, want string }{
		"nothing":             {"", "read history it: it is empty"},
		"spaces":              {" \n\n", "read history it: it is empty"},
		"no column":           {"repository,created_at\n", "read history it, line 1: there is no column started_at;"},
		"a column twice":      {"repository,repository\n", `read history it, line 1: the column "repository" is there twice`},
		"too few cells":       {good + "acme/app,\n", "read history it, line 3: the first line names 7 columns, and here are values for 2"},
		"UTF-16":              {"\xff\xfer\x00", "read history it: it is in UTF-16; save it in UTF-8"},
		"UTF-16, big end":     {"\xfe\xff\x00r", "read history it: it is in UTF-16; save it in UTF-8"},
		"gzip":                {"\x1f\x8b\x08", "read history it: it is packed; unpack it, as `gzip -d` does"},
		"a list":              {"\n[\n{}]", "read history it: it is a list in JSON; write each delivery on a line of its own, as `jq -c '.[]'` does"},
		"deliveries of none":  {"{\"zen\":\"\"}\n{\"total_count\":1,\"jobs\":[{}]}\n", "read history it: no line of it has a workflow_job, so it has no deliveries of jobs"},
		"JSON with indents":   {"{\n \"workflow_job\":{}\n}", "read history it, line 1: it is no JSON of a delivery: unexpected end of JSON input; write each delivery on one line, as `jq -c .` does"},
		"no repository":       {good + "acme,,,,,,\n", `read history it, line 3: repository "acme" is not owner/name`},
		"no time":             {good + "acme/app,yesterday,,,,,\n", `read history it, line 3: created_at "yesterday" is no time such as`},
		"a year too early":    {good + "acme/app,1970-01-01T00:00:00Z,,,,,\n", "read history it, line 3: created_at is of the year 1970, which is not from 2000 to 2099"},
		"a year too late":     {good + "acme/app,,,9999-12-31T23:59:59Z,,,\n", "read history it, line 3: completed_at is of the year 9999,"},
		"a delivery too late": {`{"workflow_job":{"id":1,"started_at":"2345-01-01T00:00:00Z"},"repository":{"full_name":"acme/app"}}`, "read history it, line 1: workflow_job.started_at is of the year 2345,"},
		"too many years": {good + "acme/app,2029-11-02T09:00:00Z,2029-11-02T09:00:00Z,2029-11-06T09:00:00Z,,,\n",
			"read history it: its jobs are from 2026-11-02 to 2029-11-06, and may be from 1098 days; split it"},
		"a row without an end":     {good + "\"" + strings.Repeat("\n", 2*history.MaxLine), "read history it, line 3: the row from there on has more than 1 MiB"},
		"a heading without an end": {strings.Repeat("a", 2*history.MaxLine), "read history it, line 1: the row from there on has more than 1 MiB"},
		"after blank lines":        {" \n\n" + good + "acme,,,,,,\n", `read history it, line 5: repository "acme" is not owner/name`},
		"no number of a job":       {good + "acme/app,,,,x,,\n", `read history it, line 3: job_id "x" is not a number`},
		"no number of a run":       {good + "acme/app,,,,,x,\n", `read history it, line 3: run_id "x" is not a number`},
		"too many labels":          {good + "acme/app,,,,,," + strings.Repeat("a ", 65) + "\n", "read history it, line 3: it has 65 labels"},
		"a long label":             {good + "acme/app,,,,,," + strings.Repeat("a", 300) + "\n", "read history it, line 3: a label has 300 bytes"},
		"no JSON":                  {"{}\n{\"action\": \n", "read history it, line 2: it is no JSON of a delivery"},
		"a long line":              {"{}\n{" + strings.Repeat(" ", history.MaxLine) + "}\n", "read history it, line 2: it has more than 1 MiB"},
		"a delivery of none":       {`{"workflow_job":{"id":1},"repository":{"full_name":""}}`, `read history it, line 1: repository.full_name "" is not owner/name`},
		"a job of no number":       {`{"workflow_job":{"id":0},"repository":{"full_name":"acme/app"}}`, "read history it, line 1: workflow_job.id 0 is not a number of a job"},
		"labels of no number":      {`{"workflow_job":{"id":1,"labels":["` + strings.Repeat("a", 300) + `"]},"repository":{"full_name":"acme/app"}}`, "read history it, line 1: a label has 300 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := history.Read("it", strings.NewReader(test.text))
			var wrong *history.Error
			if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// TestAByteOrderMark, which spreadsheets write, is no part of the first column.
func TestAByteOrderMark(t *testing.T) {
	t.Parallel()
	const heading = "repository,created_at,started_at,completed_at\n"
	if h := read(t, "\uFEFF"+heading+"acme/app,2026-11-02T09:00:00Z,2026-11-02T09:00:00Z,2026-11-02T09:00:00Z\n"); len(h.Jobs) != 1 {
		t.Errorf("%+v", h)
	}
	if h := read(t, "\uFEFF"+`{"workflow_job":{"id":1},"repository":{"full_name":"acme/app"}}`); h.Unstarted != 1 {
		t.Errorf("%+v", h)
	}
}

// TestSeparators: spreadsheets also write semicolons or tabs between columns.
func TestSeparators(t *testing.T) {
	t.Parallel()
	const text = "repository|created_at|started_at|completed_at|labels\r\nacme/app|2026-11-02T09:00:00Z|2026-11-02T09:00:20Z|2026-11-02T09:05:20Z|a,b;c\r\n" +
		"acme/app|2026-11-02T09:00:00Z|||\r\n"
	for _, separator := range []string{";", "\t"} {
		label := map[string]string{";": "a,b", "\t": "a,b;c"}[separator]
		h := read(t, strings.ReplaceAll(strings.ReplaceAll(text, "a,b;c", label), "|", separator))
		if len(h.Jobs) != 1 || h.Unstarted != 1 || h.Jobs[0].Labels[0] != label || h.Jobs[0].Took() != 5*time.Minute {
			t.Errorf("%q: %+v", separator, h)
		}
	}
}

// TestALongValueIsNoLongError: GitHub's values are short, and an error is for people.
func TestALongValueIsNoLongError(t *testing.T) {
	t.Parallel()
	_, err := history.Read("it", strings.NewReader(`{"workflow_job":{"id":`+strings.Repeat("1", 100_000)+`}}`))
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("%.500v", err)
	}
}

// TestACreationAfterTheEnd does not make the history longer: such a job is a copy.
func TestACreationAfterTheEnd(t *testing.T) {
	t.Parallel()
	h := read(t, "repository,created_at,started_at,completed_at\n"+
		"acme/app,2000-01-01T00:00:00Z,2000-01-01T00:00:10Z,2000-01-01T00:01:00Z\n"+
		"acme/app,2099-12-31T00:00:00Z,2000-01-01T00:00:10Z,2000-01-01T00:01:00Z\n")
	if len(h.Jobs) != 1 || h.Copies != 1 {
		t.Errorf("%d jobs and %d copies, want one each", len(h.Jobs), h.Copies)
	}
}

// TestLoad reads a file, or standard input.
func TestLoad(t *testing.T) {
	t.Parallel()
	const text = "repository,created_at,started_at,completed_at\nacme/app,2026-11-02T09:00:00Z,2026-11-02T09:00:00Z,2026-11-02T09:00:00Z\n"
	path := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, "-"} {
		if h, err := history.Load(path, strings.NewReader(text)); err != nil || len(h.Jobs) != 1 {
			t.Errorf("%s: %+v, %v", path, h, err)
		}
	}
	if _, err := history.Load(path+".none", nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// FuzzRead: whatever is read, jobs that come out of it have run, and are in their order.
func FuzzRead(f *testing.F) {
	f.Add([]byte("repository,created_at,started_at,completed_at\nacme/app,2026-11-02T09:00:00Z,2026-11-02T09:00:00Z,2026-11-02T09:00:00Z\n"))
	f.Add([]byte(`{"workflow_job":{"id":1,"status":"completed","runner_id":1,"started_at":"2026-11-02T09:00:00Z","completed_at":"2026-11-02T09:00:00Z"},"repository":{"full_name":"acme/app"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := history.Read("it", bytes.NewReader(data))
		if err != nil {
			return
		}
		for i, j := range h.Jobs {
			if j.Took() < 0 || j.Created.IsZero() || j.Repository == "" || i > 0 && j.Created.Before(h.Jobs[i-1].Created) {
				t.Errorf("job %d: %+v", i, j)
			}
		}
	})
}
