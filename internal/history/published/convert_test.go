package published_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/history"
	"github.com/remuda-ci/remuda/internal/history/published"
)

// packed is a text as gzip.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func moment(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at
}

// conversion is a case of a record's Convert. All of it is made up.
type conversion struct {
	file string
	jobs []history.Job
	left map[published.Reason]int
	// wrong is the beginning of the error.
	wrong string
}

func (c conversion) check(t *testing.T, convert func([]byte) (published.Converted, error), file []byte) {
	t.Helper()
	got, err := convert(file)
	switch {
	case c.wrong != "":
		if err == nil || !strings.HasPrefix(err.Error(), c.wrong) {
			t.Errorf("the error is %v, want %q", err, c.wrong)
		}
		return
	case err != nil:
		t.Fatal(err)
	}
	if diff := cmp.Diff(published.Converted{Jobs: c.jobs, LeftOut: c.left}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBitcoin(t *testing.T) {
	t.Parallel()
	const (
		// 1757894400 is midnight of 15 September 2025, and 1760486400 that of 15 October.
		first    = `{"id": 11, "name": "made up", "executingTimestamp": 1757894410, "finalStatusTimestamp": 1757894470, "build": {"id": 7, "buildCreatedTimestamp": 1757894400}}`
		last     = `{"id": 12, "executingTimestamp": 1760486405, "finalStatusTimestamp": 1760486500, "build": {"id": 8, "buildCreatedTimestamp": 1760486399}}`
		before   = `{"id": 13, "executingTimestamp": 1757894410, "finalStatusTimestamp": 1757894470, "build": {"id": 6, "buildCreatedTimestamp": 1757894399}}`
		after    = `{"id": 14, "executingTimestamp": 1760486405, "finalStatusTimestamp": 1760486500, "build": {"id": 9, "buildCreatedTimestamp": 1760486400}}`
		none     = `{"id": 15, "executingTimestamp": 1757894410, "finalStatusTimestamp": 1757894410, "build": {"id": 7, "buildCreatedTimestamp": 1757894400}}`
		negative = `{"id": 16, "executingTimestamp": 1757894410, "finalStatusTimestamp": 1757894409, "build": {"id": 7, "buildCreatedTimestamp": 1757894400}}`
	)
	firstJob := history.Job{
		ID: 11, RunID: "7", Repository: "bitcoin/bitcoin",
		Created: moment("2025-09-15T00:00:00Z"), Started: moment("2025-09-15T00:00:10Z"), Completed: moment("2025-09-15T00:01:10Z"),
	}
	lastJob := history.Job{
		ID: 12, RunID: "8", Repository: "bitcoin/bitcoin",
		Created: moment("2025-10-14T23:59:59Z"), Started: moment("2025-10-15T00:00:05Z"), Completed: moment("2025-10-15T00:01:40Z"),
	}
	for name, c := range map[string]conversion{
		"a month":        {file: "[" + strings.Join([]string{last, before, first, after}, ",") + "]", jobs: []history.Job{lastJob, firstJob}},
		"no time":        {file: "[" + strings.Join([]string{none, first, negative}, ",") + "]", jobs: []history.Job{firstJob}, left: map[published.Reason]int{"ended when they began, or before": 2}},
		"nothing":        {file: "[]"},
		"no list":        {file: first, wrong: "read the list of tasks: json: cannot unmarshal object"},
		"half a list":    {file: "[" + first, wrong: "read the list of tasks: unexpected end of JSON input"},
		"no JSON":        {file: "<html>", wrong: "read the list of tasks: invalid character '<'"},
		"a time as text": {file: strings.ReplaceAll("["+first+"]", "1757894410", `"noon"`), wrong: "read the list of tasks: json: cannot unmarshal string"},
		"no id":          {file: "[" + first + "," + strings.Replace(last, `"id": 12`, `"key": 12`, 1) + "]", wrong: "task 2 of the list: its id is 0, and that of its build 8; both are above 0"},
		"no build":       {file: `[{"id": 11, "executingTimestamp": 1757894410, "finalStatusTimestamp": 1757894470}]`, wrong: "task 1 of the list: its id is 11, and that of its build 0"},
		"no start":       {file: strings.ReplaceAll("["+first+"]", "1757894410", "0"), wrong: "task 1 of the list, with the id 11, lacks a time"},
		"no end":         {file: strings.ReplaceAll("["+first+"]", "1757894470", "null"), wrong: "task 1 of the list, with the id 11, lacks a time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t, published.Bitcoin().Convert, packed(t, c.file))
		})
	}
	whole := packed(t, "["+first+"]")
	for name, file := range map[string][]byte{
		"not packed": []byte("[" + first + "]"), "empty": nil, "cut off": whole[:len(whole)-9], "changed": append(bytes.Clone(whole[:len(whole)-8]), make([]byte, 8)...),
		"with more behind it": append(bytes.Clone(whole), "more"...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conversion{wrong: "unpack: "}.check(t, published.Bitcoin().Convert, file)
		})
	}
}

func TestIREE(t *testing.T) {
	t.Parallel()
	const (
		done = `{"job_id": 21, "run_id": 5, "run_attempt": 1, "status": "completed", "runner_name": "box-1", "labels": ["self-hosted", "Linux"],` +
			` "created_at": "2026-04-23T09:00:00Z", "started_at": "2026-04-23T09:00:30Z", "completed_at": "2026-04-23T09:05:00Z"}` + "\n"
		waits = `{"job_id": 21, "run_id": 5, "status": "queued", "runner_name": "", "labels": ["self-hosted", "Linux"],` +
			` "created_at": "2026-04-23T09:00:00Z", "started_at": "2026-04-23T09:00:00Z", "completed_at": null}` + "\n"
		zoned = `{"job_id": 22, "run_id": 5, "status": "completed", "runner_name": "box-2", "labels": [],` +
			` "created_at": "2026-04-23T11:00:00+02:00", "started_at": "2026-04-23T11:00:00+02:00", "completed_at": "2026-04-23T11:00:01+02:00"}` + "\n"
	)
	job := history.Job{
		ID: 21, RunID: "5", Repository: "iree-org/iree", Labels: []string{"self-hosted", "Linux"},
		Created: moment("2026-04-23T09:00:00Z"), Started: moment("2026-04-23T09:00:30Z"), Completed: moment("2026-04-23T09:05:00Z"),
	}
	zonedJob := history.Job{
		ID: 22, RunID: "5", Repository: "iree-org/iree", Labels: []string{},
		Created: moment("2026-04-23T09:00:00Z"), Started: moment("2026-04-23T09:00:00Z"), Completed: moment("2026-04-23T09:00:01Z"),
	}
	left := func(why published.Reason) map[published.Reason]int { return map[published.Reason]int{why: 1} }
	without := func(what, instead string) string { return strings.Replace(done, what, instead, 1) }
	for name, c := range map[string]conversion{
		"jobs":               {file: zoned + done, jobs: []history.Job{zonedJob, job}},
		"one read twice":     {file: waits + zoned + done, jobs: []history.Job{job, zonedJob}},
		"no end of line":     {file: strings.TrimSpace(done), jobs: []history.Job{job}},
		"nothing":            {},
		"waits":              {file: waits, left: left("had no end when they were last read")},
		"runs":               {file: without(`"completed", "r`, `"in_progress", "r`), left: left("had no end when they were last read")},
		"had no runner":      {file: without("box-1", ""), left: left("no runner ever had")},
		"of another attempt": {file: without(`_at": "2026-04-23T09:00:00Z"`, `_at": "2026-04-24T09:00:00Z"`), left: left("are copies of an earlier attempt's")},
		"no time":            {file: without("09:05:00", "09:00:30"), left: left("ended when they began, or before")},
		"no JSON":            {file: done + "<html>\n", wrong: "line 2: read a job: invalid character '<'"},
		"a blank line":       {file: done + "\n" + zoned, wrong: "line 2: read a job: unexpected end of JSON input"},
		"half a line":        {file: done[:len(done)/2], wrong: "line 1: read a job: unexpected end of JSON input"},
		"no time of day":     {file: without("2026-04-23T09:00:30Z", "noon"), wrong: "line 1: read a job: parsing time"},
		"no id":              {file: without(`"job_id"`, `"id"`), wrong: "line 1: job_id is 0, and run_id 5; both are above 0"},
		"no run":             {file: without(`"run_id"`, `"run"`), wrong: "line 1: job_id is 21, and run_id 0; both are above 0"},
		"no creation":        {file: without(`"created_at"`, `"made_at"`), wrong: "line 1: created_at is missing"},
		"no start":           {file: without(`"started_at"`, `"began_at"`), wrong: "line 1: the job is completed, and started_at or completed_at is missing"},
		"no status":          {file: without(`"status"`, `"state"`), wrong: "line 1: status is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t, published.IREE().Convert, []byte(c.file))
		})
	}
}

func TestOpenStates(t *testing.T) {
	t.Parallel()
	const (
		heading = "repo,id_build,branch,created_at,gh_job_id,job_details\n"
		two     = `acme/shop,7,main,2025-01-01T00:00:00Z,"[31, 32]","[{""job_name"": ""lint"", ""job_start"": ""2025-01-01T00:00:06Z"", ""job_end"": ""2025-01-01T00:00:50Z"", ""steps"": [{""step_name"": ""a\nb""}]},` +
			` {""job_name"": ""publish"", ""job_start"": ""2025-01-01T00:00:07Z"", ""job_end"": ""2025-01-01T00:02:00Z""}]"` + "\n"
		last   = `acme/shop,8,main,2025-01-31T23:59:59Z,[33],"[{""job_start"": ""2025-02-01T00:00:05Z"", ""job_end"": ""2025-02-01T00:01:00Z""}]"` + "\n"
		before = `acme/shop,6,main,2024-12-31T23:59:59Z,[34],"[{""job_start"": ""2025-01-01T00:00:05Z"", ""job_end"": ""2025-01-01T00:01:00Z""}]"` + "\n"
		after  = `acme/shop,9,main,2025-02-01T00:00:00Z,[35],"[{""job_start"": ""2025-02-01T00:00:05Z"", ""job_end"": ""2025-02-01T00:01:00Z""}]"` + "\n"
		none   = `acme/shop,10,main,2025-01-31T00:00:00Z,[],[]` + "\n"
	)
	job := func(id int64, run, created, started, completed string) history.Job {
		return history.Job{
			ID: id, RunID: run, Repository: "openstates/openstates-scrapers", Created: moment(created), Started: moment(started), Completed: moment(completed),
		}
	}
	firstJob := job(31, "7", "2025-01-01T00:00:00Z", "2025-01-01T00:00:06Z", "2025-01-01T00:00:50Z")
	secondJob := job(32, "7", "2025-01-01T00:00:00Z", "2025-01-01T00:00:07Z", "2025-01-01T00:02:00Z")
	lastJob := job(33, "8", "2025-01-31T23:59:59Z", "2025-02-01T00:00:05Z", "2025-02-01T00:01:00Z")
	with := func(what, instead string) string { return heading + last + strings.Replace(two, what, instead, 1) }
	for name, c := range map[string]conversion{
		"a month":             {file: heading + after + last + none + two + before, jobs: []history.Job{lastJob, firstJob, secondJob}},
		"other columns":       {file: "created_at,job_details,id_build,gh_job_id\n2025-01-31T23:59:59Z,[],8,[]\n"},
		"no end of line":      {file: heading + strings.TrimSpace(last), jobs: []history.Job{lastJob}},
		"no time":             {file: with("00:00:50Z", "00:00:06Z"), jobs: []history.Job{lastJob, secondJob}, left: map[published.Reason]int{"ended when they began, or before": 1}},
		"negative":            {file: with("00:00:50Z", "00:00:05Z"), jobs: []history.Job{lastJob, secondJob}, left: map[published.Reason]int{"ended when they began, or before": 1}},
		"no run":              {file: heading},
		"nothing":             {wrong: "read the names of the columns: EOF"},
		"no column":           {file: "repo,id_build,created_at,job_details\n", wrong: "line 1: there is no column gh_job_id"},
		"no CSV":              {file: "<html>\n", wrong: "line 1: there is no column id_build"},
		"half a line":         {file: heading + last + two[:strings.Index(two, "publish")], wrong: "read a run: parse error on line 3"},
		"too few columns":     {file: heading + "acme/shop,7\n", wrong: "read a run: record on line 2: wrong number of fields"},
		"no id of a run":      {file: with(",7,", ",,"), wrong: `line 3: id_build is ""; it is a number above 0`},
		"a run below 0":       {file: with(",7,", ",-7,"), wrong: `line 3: id_build is "-7"; it is a number above 0`},
		"a run with decimals": {file: with(",7,", ",7.0,"), wrong: `line 3: id_build is "7.0"; it is a number above 0`},
		"no creation":         {file: with("2025-01-01T00:00:00Z", ""), wrong: "line 3: created_at: parsing time"},
		"no ids":              {file: with(`"[31, 32]"`, ""), wrong: "line 3: gh_job_id: unexpected end of JSON input"},
		"too few ids":         {file: with(`"[31, 32]"`, "[31]"), wrong: "line 3: gh_job_id has 1 ids, and job_details 2 jobs"},
		"an id of 0":          {file: with("31", "0"), wrong: "line 3: an id in gh_job_id is 0; it is above 0"},
		"no jobs":             {file: with("[{", "{"), wrong: "line 3: job_details: invalid character"},
		"no start":            {file: with("job_start", "began"), wrong: "line 3: job 31 lacks a time"},
		"no end":              {file: with("job_end", "ended"), wrong: "line 3: job 31 lacks a time"},
		"a time as a number":  {file: with(`""2025-01-01T00:00:06Z""`, "6"), wrong: "line 3: job_details: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t, published.OpenStates().Convert, []byte(c.file))
		})
	}
}
