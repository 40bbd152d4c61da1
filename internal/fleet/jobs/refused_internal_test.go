package jobs

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// TestRefusalsInTheLog: the first refusal of a repository and a reason is logged at info, and those after it at debug.
func TestRefusalsInTheLog(t *testing.T) {
	var logs bytes.Buffer
	js := &Jobs{Log: hclog.New(&hclog.LoggerOptions{Output: &logs, Level: hclog.Debug})}
	for _, c := range []struct {
		repository string
		code       lifecycle.ReasonCode
		level      string
	}{
		{"acme/app", lifecycle.ReasonFork, "[INFO]"},
		{"acme/app", lifecycle.ReasonFork, "[DEBUG]"},
		{"acme/app", lifecycle.ReasonFork, "[DEBUG]"},
		{"acme/app", lifecycle.ReasonNotServed, "[INFO]"},
		{"acme/site", lifecycle.ReasonFork, "[INFO]"},
	} {
		logs.Reset()
		js.logRefusal(lifecycle.WorkflowJob{ID: 1, Repository: c.repository}, lifecycle.Because(c.code, "no host"))
		if !strings.Contains(logs.String(), c.level) {
			t.Errorf("%s, %s: the log is %q, want it at %s", c.repository, c.code, logs.String(), c.level)
		}
	}
}

// TestNotesOfJobsAreBounded: what is noted of jobs is forgotten once it is of too many.
func TestNotesOfJobsAreBounded(t *testing.T) {
	js := &Jobs{noted: map[int64]lifecycle.Reason{}}
	why := lifecycle.Because(lifecycle.ReasonFork, "no host")
	for id := range int64(2*notedAtMost + 1) {
		js.note(id, why)
		if n := len(js.noted); n > notedAtMost || js.notedFor(id) != why {
			t.Fatalf("%d jobs are noted, and of job %d %v is", n, id, js.notedFor(id))
		}
	}
}
