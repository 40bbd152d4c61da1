// Package subject reads how people name a run, a job or a host.
package subject

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle/runnername"
)

// Subject is a run, a job or a host. Of one that was named by an id alone, Repository is empty.
type Subject struct {
	// Repository is "owner/name".
	Repository string
	// RunID is the id of the run, or the slot of a host of a job pool ("turn:<pool>:<number>"). An id alone may also be that of a request or
	// a job, or of the launches of a warm pool ("warm:<pool>").
	RunID string
	// JobID is the job of the URL; 0 without one.
	JobID int64
	// InstanceID is set instead of a run.
	InstanceID string
}

// Forms are the ways to name a run, for errors.
const Forms = "write owner/name/RUN, owner/name RUN, the run's id alone, a URL of GitHub (https://github.com/owner/name/actions/runs/RUN) or the id of a host, a job or a request"

var (
	instanceID = regexp.MustCompile(`^i-[0-9A-Za-z_.-]{1,126}$`)
	runID      = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_.-]{0,63}$`)
	requestID  = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_.-]{0,127}$`)
	slot       = regexp.MustCompile(`^(turn|spare):[a-z0-9-]{1,63}:[0-9]+$`)
	warm       = regexp.MustCompile(`^warm:[a-z0-9-]{1,63}$`)
	repository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]+$`)
)

// Parse reads one argument, or two: a repository and a run.
func Parse(args []string) (Subject, error) {
	switch len(args) {
	case 1:
		return parse(args[0])
	case 2:
		if !repository.MatchString(args[0]) || !isRun(args[1]) {
			return Subject{}, fmt.Errorf("%q %q is not a repository and a run: %s", args[0], args[1], Forms)
		}
		return Subject{Repository: args[0], RunID: args[1]}, nil
	}
	return Subject{}, fmt.Errorf("a run or a host is needed: %s", Forms)
}

// ParseRun is Parse for a run, with its repository.
func ParseRun(args []string) (Subject, error) {
	s, err := Parse(args)
	if err == nil && (s.Repository == "" || s.InPool()) {
		err = fmt.Errorf("%q does not name a run with its repository: write owner/name/RUN or owner/name RUN", strings.Join(args, " "))
	}
	return s, err
}

func parse(text string) (Subject, error) {
	switch {
	case strings.Contains(text, "://"):
		return parseURL(text)
	case instanceID.MatchString(text):
		return Subject{InstanceID: text}, nil
	case instanceID.MatchString(runnername.InstanceOf(text)):
		return Subject{InstanceID: runnername.InstanceOf(text)}, nil
	case isRun(text), requestID.MatchString(text), warm.MatchString(text):
		return Subject{RunID: text}, nil
	}
	cut := strings.LastIndex(text, "/")
	if cut > 0 && repository.MatchString(text[:cut]) && isRun(text[cut+1:]) {
		return Subject{Repository: text[:cut], RunID: text[cut+1:]}, nil
	}
	return Subject{}, fmt.Errorf("%q names neither a run nor a host: %s", text, Forms)
}

// isRun reports whether a text is the id of a run, or of a slot, which stands for one.
func isRun(text string) bool { return runID.MatchString(text) || slot.MatchString(text) }

// InPool reports whether the subject is a slot of a job pool, or the launches of a warm pool: no run of GitHub.
func (s Subject) InPool() bool { return strings.Contains(s.RunID, ":") }

// parseURL reads /owner/name/actions/runs/RUN, with what GitHub puts behind it (/job/JOB, /attempts/N). A GitHub
// Enterprise Server has the same paths on a host of its own.
func parseURL(text string) (Subject, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Subject{}, err
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 5 || parts[2] != "actions" || parts[3] != "runs" || !runID.MatchString(parts[4]) {
		return Subject{}, fmt.Errorf("%q is not the URL of a run or a job: %s", text, Forms)
	}
	s := Subject{Repository: parts[0] + "/" + parts[1], RunID: parts[4]}
	if i := len(parts) - 2; i >= 5 && parts[i] == "job" {
		if s.JobID, err = strconv.ParseInt(parts[i+1], 10, 64); err != nil || s.JobID <= 0 {
			return Subject{}, fmt.Errorf("%q has no id of a job behind /job/: %s", text, Forms)
		}
	}
	return s, nil
}

// String is how the subject is written in messages.
func (s Subject) String() string {
	switch {
	case s.InstanceID != "":
		return s.InstanceID
	case s.Repository != "":
		return s.Repository + " " + s.RunID
	}
	return s.RunID
}
