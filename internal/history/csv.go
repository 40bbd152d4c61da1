package history

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The columns of CSV. Those of times are as RFC 3339 has them, and empty for a time that did not come.
const (
	columnRepository = "repository"
	columnLabels     = "labels"
	columnCreated    = "created_at"
	columnStarted    = "started_at"
	columnCompleted  = "completed_at"
	columnRun        = "run_id"
	columnJob        = "job_id"
)

// columns are all of them, in the order in which they are written.
var columns = []string{columnRepository, columnLabels, columnCreated, columnStarted, columnCompleted, columnRun, columnJob}

// required are those that each file has. Others that are not known are passed over.
var required = []string{columnRepository, columnCreated, columnStarted, columnCompleted}

var (
	repositoryName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,39}/[A-Za-z0-9._-]{1,100}$`)
	runNumber      = regexp.MustCompile(`^[0-9]{0,20}$`)
)

// maxLabels and maxLabel bound the labels of a job, and their bytes.
const maxLabels, maxLabel = 64, 256

// readCSV reads jobs below a line that names the columns. A job whose number was there before does not count again.
func readCSV(name string, from io.Reader, since time.Time) (h History, err error) {
	seen := map[int64]bool{}
	err = eachCSV(name, from, func(j Job, line int) error {
		if j.ID != 0 && seen[j.ID] {
			return nil
		}
		seen[j.ID] = true
		if h.add(j, since); len(h.Jobs) > MaxJobs {
			return &Error{name, line, fmt.Sprintf("it has more than %d jobs; split it", MaxJobs)}
		}
		return nil
	})
	return h, err
}

// Each reads CSV and calls do with each job, also those that no runner had or that have no end, in the order of the file, known by name
// in errors.
func Each(name string, from io.Reader, do func(Job)) error {
	return eachCSV(name, from, func(j Job, _ int) error {
		do(j)
		return nil
	})
}

func eachCSV(name string, from io.Reader, do func(j Job, line int) error) error {
	whole := bufio.NewReader(from)
	row := &bounded{from: whole, left: MaxLine}
	in := csv.NewReader(row)
	in.ReuseRecord, in.Comma = true, separatorOf(whole)
	in.TrimLeadingSpace = in.Comma != '\t' // a tab is a space to it
	at, err := headingOf(name, in)
	if row.over {
		return tooWide(name, 1)
	}
	if err != nil {
		return err
	}
	for line := 1; ; {
		row.left = MaxLine
		cells, err := in.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case row.over:
			return tooWide(name, line+1)
		case err != nil:
			return csvError(name, err, len(cells), len(at))
		}
		line, _ = in.FieldPos(0)
		j, err := csvJob(cells, at)
		if err != nil {
			return &Error{name, line, err.Error()}
		}
		if err := do(j, line); err != nil {
			return err
		}
	}
}

// separatorOf is what stands between the columns that the first line names. A spreadsheet writes semicolons where numbers have a comma, or tabs.
func separatorOf(in *bufio.Reader) rune {
	begin, _ := in.Peek(4096) // an error comes again when it is read
	heading, _, _ := bytes.Cut(begin, []byte{'\n'})
	for _, separator := range ",;\t" {
		if bytes.ContainsRune(heading, separator) {
			return separator
		}
	}
	return ','
}

// tooWide is the error of a row without an end: a quote that is not closed takes all that follows for its cell.
func tooWide(name string, line int) error {
	return &Error{name, line, fmt.Sprintf("the row from there on has more than %d MiB; a row of a job has some 100 bytes", MaxLine>>20)}
}

// headingOf reads the first line: where each column is.
func headingOf(name string, in *csv.Reader) (at map[string]int, err error) {
	heading, err := in.Read()
	if err != nil {
		return nil, csvError(name, err, 0, 0)
	}
	at = map[string]int{}
	for i, column := range heading {
		column = strings.TrimSpace(column)
		if _, twice := at[column]; twice {
			return nil, &Error{name, 1, fmt.Sprintf("the column %.40q is there twice", column)}
		}
		at[column] = i
	}
	for _, column := range required {
		if _, ok := at[column]; !ok {
			return nil, &Error{name, 1, fmt.Sprintf("there is no column %s; the first line names the columns, at least %s", column, strings.Join(required, ", "))}
		}
	}
	return at, nil
}

// csvError is the error of a row with so many cells below so many columns.
func csvError(name string, err error, cells, columns int) error {
	var wrong *csv.ParseError
	switch {
	case errors.Is(err, csv.ErrFieldCount) && errors.As(err, &wrong):
		return &Error{name, wrong.Line, fmt.Sprintf("the first line names %d columns, and here are values for %d", columns, cells)}
	case errors.As(err, &wrong):
		return &Error{name, wrong.Line, wrong.Err.Error()}
	}
	return &Error{Name: name, Why: emptyOr(err)}
}

// csvJob is the job of a line. What it returns shares nothing with the cells.
func csvJob(cells []string, at map[string]int) (j Job, err error) {
	cell := func(column string) string {
		if i, ok := at[column]; ok {
			return strings.TrimSpace(cells[i])
		}
		return ""
	}
	j.Repository, j.RunID = strings.Clone(cell(columnRepository)), strings.Clone(cell(columnRun))
	if !IsRepository(j.Repository) {
		return j, fmt.Errorf("repository %.80q is not owner/name", j.Repository)
	}
	if !runNumber.MatchString(j.RunID) {
		return j, fmt.Errorf("run_id %.40q is not a number", j.RunID)
	}
	if text := cell(columnJob); text != "" {
		if j.ID, err = strconv.ParseInt(text, 10, 64); err != nil || j.ID < 0 {
			return j, fmt.Errorf("job_id %.40q is not a number", text)
		}
	}
	for _, of := range []struct {
		column string
		to     *time.Time
	}{{columnCreated, &j.Created}, {columnStarted, &j.Started}, {columnCompleted, &j.Completed}} {
		text := cell(of.column)
		if text == "" {
			continue
		}
		if *of.to, err = time.Parse(time.RFC3339, text); err != nil {
			return j, fmt.Errorf("%s %.40q is no time such as 2026-11-02T09:00:00Z", of.column, text)
		}
		if why := outOfRange(of.column, *of.to); why != "" {
			return j, errors.New(why)
		}
	}
	j.Labels, err = labelsOf(strings.Fields(cell(columnLabels)))
	return j, err
}

// labelsOf checks labels. What it returns shares nothing with them: they may be parts of a long line.
func labelsOf(labels []string) ([]string, error) {
	if len(labels) > maxLabels {
		return nil, fmt.Errorf("it has %d labels; a job has at most %d", len(labels), maxLabels)
	}
	labels = slices.Clone(labels)
	for i, l := range labels {
		if len(l) > maxLabel {
			return nil, fmt.Errorf("a label has %d bytes; it may have %d", len(l), maxLabel)
		}
		labels[i] = strings.Clone(l)
	}
	return labels, nil
}

// IsRepository reports whether a name is "owner/name".
func IsRepository(name string) bool { return repositoryName.MatchString(name) }

// Write writes jobs as CSV that Read reads. A label is one word there, what is too much of labels is left out, and so are times of no job.
func Write(w io.Writer, jobs ...Job) error {
	out := csv.NewWriter(w)
	for _, j := range jobs {
		_ = out.Write(row(j)) // the error is kept, and returned below
	}
	out.Flush()
	return out.Error()
}

// WriteHeading writes the line above the jobs.
func WriteHeading(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(columns) // the error is kept, and returned below
	out.Flush()
	return out.Error()
}

func row(j Job) []string {
	id := ""
	if j.ID != 0 {
		id = strconv.FormatInt(j.ID, 10)
	}
	return []string{j.Repository, words(j.Labels), text(j.Created), text(j.Started), text(j.Completed), j.RunID, id}
}

// words are labels between spaces. Who writes a workflow chooses them: one with spaces must not become two.
func words(labels []string) string {
	var all []string
	for _, l := range labels {
		if l = strings.Join(strings.Fields(l), "_"); l != "" && len(l) <= maxLabel && len(all) < maxLabels {
			all = append(all, l)
		}
	}
	return strings.Join(all, " ")
}

func text(t time.Time) string {
	if t.IsZero() || outOfRange("it", t.UTC()) != "" {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
