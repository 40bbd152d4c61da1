//go:build testhost

package host_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/local"
)

// job is one of a workflow: a name and a script of bash.
type job struct{ name, script string }

// gate makes a job wait until it is opened: see open.
func gate(name string) string {
	return fmt.Sprintf("echo waiting at gate %s\nuntil [ -e /var/tmp/gate-%s ]; do sleep 0.1; done\n", name, name)
}

// open lets a job of the machine go on.
func (m *machine) open(name string) {
	m.t.Helper()
	m.exec("touch", "/var/tmp/gate-"+name)
}

// begin starts a workflow run of such jobs. On one host they run in this order.
func (s *stage) begin(runID string, jobs ...job) {
	s.Helper()
	s.beginFrom(runID, local.Origin{Event: "push"}, jobs...)
}

// beginFrom starts one that something else than a push has started.
func (s *stage) beginFrom(runID string, from local.Origin, jobs ...job) {
	s.Helper()
	if from == (local.Origin{}) {
		from.Event = "push"
	}
	var text strings.Builder
	text.WriteString("on: push\njobs:\n")
	for n, j := range jobs {
		fmt.Fprintf(&text, "  %s:\n    runs-on: \"${{ github.run_id }}\"\n", j.name)
		if n > 0 {
			fmt.Fprintf(&text, "    needs: [%s]\n", jobs[n-1].name)
		}
		text.WriteString("    steps:\n      - run: |\n")
		for line := range strings.Lines(strings.TrimSuffix(j.script, "\n") + "\n") {
			text.WriteString("          " + line)
		}
	}
	_, err := s.github.StartRunFrom(s.ctx, s.repository, runID, text.String(), from)
	check(s, err)
}

// running waits until a job has come to its gate, or to whatever it prints.
func (s *stage) running(runID, name, says string) {
	s.Helper()
	eventually(s, within, "job "+name+" says "+says, func() bool {
		j := s.job(runID, name)
		if j.Status == "completed" {
			s.Fatalf("job %s of run %s is over: %s\n%s", name, runID, j.Conclusion, j.Log)
		}
		return strings.Contains(afterScript(j.Log), says)
	})
}

// succeeds waits until a job is over, and returns what it printed.
func (s *stage) succeeds(runID, name string) string {
	s.Helper()
	j := s.over(runID, name)
	if j.Conclusion != "success" {
		s.Errorf("job %s of run %s came out as %q:\n%s", name, runID, j.Conclusion, j.Log)
	}
	return afterScript(j.Log)
}

// over waits until a job is.
func (s *stage) over(runID, name string) local.Job {
	s.Helper()
	return s.overWithin(runID, name, within)
}

func (s *stage) overWithin(runID, name string, limit time.Duration) (j local.Job) {
	s.Helper()
	eventually(s, limit, "job "+name+" is over", func() bool {
		j = s.job(runID, name)
		return j.Status == "completed"
	})
	return j
}

func (s *stage) job(runID, name string) local.Job {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	r, err := s.github.Run(ctx, runID)
	check(s, err)
	for _, j := range r.Jobs {
		if j.Name == name {
			return j
		}
	}
	return local.Job{}
}

// afterScript is a job's log without the script that it begins with.
func afterScript(log string) string {
	_, after, _ := strings.Cut(log, "\n##[endgroup]\n")
	return after
}
