package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// delivery is a recorded delivery: the body that GitHub sent, alone on its line, or below "payload", or below "request" and "payload", as GitHub's
// own list of deliveries has it.
type delivery struct {
	Job        *deliveredJob `json:"workflow_job"`
	Repository struct {
		FullName string `json:"full_name"`
	} `json:"repository"`

	Payload *delivery `json:"payload"`
	Request *struct {
		Payload *delivery `json:"payload"`
	} `json:"request"`
}

type deliveredJob struct {
	ID          int64     `json:"id"`
	RunID       int64     `json:"run_id"`
	Labels      []string  `json:"labels"`
	Status      string    `json:"status"`
	RunnerID    int64     `json:"runner_id"`
	CreatedAt   time.Time `json:"created_at"`
	StartedAt   time.Time `json:"started_at"`
	CompletedAt time.Time `json:"completed_at"`
}

func (d *delivery) body() *delivery {
	switch {
	case d.Request != nil && d.Request.Payload != nil:
		return d.Request.Payload
	case d.Payload != nil:
		return d.Payload
	}
	return d
}

// readDeliveries reads recorded deliveries, in any order. Those of a job count together, and others than those of jobs do not count.
func readDeliveries(name string, from io.Reader, since time.Time) (h History, err error) {
	jobs, order := map[int64]*Job{}, []int64(nil)
	in := bufio.NewScanner(from)
	in.Buffer(nil, MaxLine)
	line := 0
	for in.Scan() {
		line++
		if len(in.Bytes()) == 0 {
			continue
		}
		var d delivery
		if err := json.Unmarshal(in.Bytes(), &d); err != nil {
			return h, &Error{name, line, fmt.Sprintf("it is no JSON of a delivery: %.200s%s", err, acrossLines(err))} // the error may have all of a long value
		}
		body := d.body()
		if body.Job == nil {
			continue
		}
		j, known := jobs[body.Job.ID]
		if !known {
			if len(order) == MaxJobs {
				return h, &Error{name, line, fmt.Sprintf("it has more than %d jobs; split it", MaxJobs)}
			}
			j = &Job{ID: body.Job.ID}
			jobs[j.ID], order = j, append(order, j.ID)
		}
		if err := j.merge(body); err != nil {
			return h, &Error{name, line, err.Error()}
		}
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return h, &Error{name, line + 1, fmt.Sprintf("it has more than %d MiB; a delivery of a job has a few KiB", MaxLine>>20)}
	case err != nil:
		return h, &Error{name, line + 1, err.Error()}
	}
	if len(order) == 0 {
		return h, &Error{Name: name, Why: "no line of it has a workflow_job, so it has no deliveries of jobs"}
	}
	for _, id := range order {
		h.add(*jobs[id], since)
	}
	return h, nil
}

// acrossLines says what to do about a delivery that goes on on the next line.
func acrossLines(err error) string {
	if wrong := (*json.SyntaxError)(nil); errors.As(err, &wrong) && wrong.Error() == "unexpected end of JSON input" {
		return "; write each delivery on one line, as `jq -c .` does"
	}
	return ""
}

// merge adds what a delivery says of the job. While a job waits, GitHub says that it started when it was made.
func (j *Job) merge(d *delivery) (err error) {
	of := d.Job
	switch {
	case of.ID <= 0:
		return fmt.Errorf("workflow_job.id %d is not a number of a job", of.ID)
	case !IsRepository(d.Repository.FullName):
		return fmt.Errorf("repository.full_name %.80q is not owner/name", d.Repository.FullName)
	}
	for _, why := range []string{outOfRange("created_at", of.CreatedAt), outOfRange("started_at", of.StartedAt), outOfRange("completed_at", of.CompletedAt)} {
		if why != "" {
			return errors.New("workflow_job." + why)
		}
	}
	j.Repository, j.RunID = d.Repository.FullName, strconv.FormatInt(of.RunID, 10)
	if j.Labels, err = labelsOf(of.Labels); err != nil {
		return err
	}
	if j.Created.IsZero() || !of.CreatedAt.IsZero() && of.CreatedAt.Before(j.Created) {
		j.Created = of.CreatedAt
	}
	if of.Status == "in_progress" || of.Status == "completed" && of.RunnerID != 0 {
		j.Started = of.StartedAt
	}
	if of.Status == "completed" {
		j.Completed = of.CompletedAt
	}
	return nil
}
