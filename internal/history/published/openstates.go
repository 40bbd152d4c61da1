package published

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/history"
)

// OpenStates is a month of openstates/openstates-scrapers, as gha-dashboard-pipeline has read it from GitHub's API.
func OpenStates() Record {
	return Record{
		Name:       "openstates-month",
		Repository: "satnam-walia/gha-dashboard-pipeline",
		Commit:     "ebc0eeb17e23017ce305691d1e80336439018f4b",
		Files:      []File{{"output/raw/workflows.csv", 2086305, "feb4376f151db51b81cfdc30d7d8c0c049ab893e7dc4099420809f70b8d8734e"}},
		Convert:    convertOpenStates,
	}
}

// The record has thirteen months. openStatesFrom and openStatesTo bound the runs that the month has by their creation.
var (
	openStatesFrom = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	openStatesTo   = openStatesFrom.AddDate(0, 1, 0)
)

// openStatesColumns are the columns that are read, in the order of the fields of openStatesRun.
var openStatesColumns = []string{"id_build", "created_at", "gh_job_id", "job_details"}

// openStatesJob is a job of the record. Its id is beside it, in a list with as many ids as the run has jobs.
type openStatesJob struct {
	Started   time.Time `json:"job_start"`
	Completed time.Time `json:"job_end"`
}

// openStatesRun is a line of the record.
type openStatesRun struct {
	id      int64
	created time.Time
	jobIDs  []int64
	jobs    []openStatesJob
}

// convertOpenStates reads lines of CSV, a run in each. They have no labels and no time at which a job was created, so a job's is that of its run.
func convertOpenStates(file []byte) (c Converted, err error) {
	in := csv.NewReader(bytes.NewReader(file))
	heading, err := in.Read()
	if err != nil {
		return c, fmt.Errorf("read the names of the columns: %w", err)
	}
	var columns []int
	for _, name := range openStatesColumns {
		i := slices.Index(heading, name)
		if i < 0 {
			return c, fmt.Errorf("line 1: there is no column %s", name)
		}
		columns = append(columns, i)
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return c, fmt.Errorf("read a run: %w", err)
		}
		line, _ := in.FieldPos(0)
		run, err := readOpenStatesRun(row[columns[0]], row[columns[1]], row[columns[2]], row[columns[3]])
		if err != nil {
			return c, fmt.Errorf("line %d: %w", line, err)
		}
		c.addOpenStates(run)
	}
}

func readOpenStatesRun(id, created, jobIDs, jobs string) (r openStatesRun, err error) {
	if r.id, err = strconv.ParseInt(id, 10, 64); err != nil || r.id <= 0 {
		return r, fmt.Errorf("id_build is %.40q; it is a number above 0", id)
	}
	if r.created, err = time.Parse(time.RFC3339, created); err != nil {
		return r, fmt.Errorf("created_at: %w", err)
	}
	if err := json.Unmarshal([]byte(jobIDs), &r.jobIDs); err != nil {
		return r, fmt.Errorf("gh_job_id: %.200w", err)
	}
	if err := json.Unmarshal([]byte(jobs), &r.jobs); err != nil {
		return r, fmt.Errorf("job_details: %.200w", err)
	}
	if len(r.jobIDs) != len(r.jobs) {
		return r, fmt.Errorf("gh_job_id has %d ids, and job_details %d jobs", len(r.jobIDs), len(r.jobs))
	}
	for i, j := range r.jobs {
		switch {
		case r.jobIDs[i] <= 0:
			return r, fmt.Errorf("an id in gh_job_id is %d; it is above 0", r.jobIDs[i])
		case j.Started.IsZero() || j.Completed.IsZero():
			return r, fmt.Errorf("job %d lacks a time", r.jobIDs[i])
		}
	}
	return r, nil
}

// addOpenStates adds the jobs of a run of the month.
func (c *Converted) addOpenStates(r openStatesRun) {
	if r.created.Before(openStatesFrom) || !r.created.Before(openStatesTo) {
		return
	}
	for i, j := range r.jobs {
		if !j.Completed.After(j.Started) {
			c.leaveOut(reasonNoTime, 1)
			continue
		}
		c.Jobs = append(c.Jobs, history.Job{
			ID: r.jobIDs[i], RunID: strconv.FormatInt(r.id, 10), Repository: "openstates/openstates-scrapers",
			Created: r.created.UTC(), Started: j.Started.UTC(), Completed: j.Completed.UTC(),
		})
	}
}
