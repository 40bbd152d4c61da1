package firstcontact

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// started is a workflow run of one job.
type started struct {
	s  *session
	id int64
}

// step is one of a job: a condition, which may be empty, and a script.
type step struct{ condition, script string }

// startJob starts a run whose one job wants a label, and waits until the job is queued.
func (s *session) startJob(ctx context.Context, label string, steps ...step) (*started, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "name: Remuda first contact\non: push\npermissions: {}\njobs:\n  check:\n    runs-on: %s\n    steps:\n", label)
	for i, st := range steps {
		fmt.Fprintf(&text, "      - name: step %d\n        shell: bash\n", i+1)
		if st.condition != "" {
			fmt.Fprintf(&text, "        if: ${{ %s }}\n", st.condition)
		}
		fmt.Fprintf(&text, "        run: |\n          %s\n", strings.ReplaceAll(st.script, "\n", "\n          "))
	}
	branch := s.name("branch")
	s.Say("starting a run for the label %s", label)
	s.branches = append(s.branches, branch)
	sha, err := s.gh.pushFile(ctx, branch, ".github/workflows/first-contact.yml", text.String())
	if err != nil {
		return nil, fmt.Errorf("start a run: %w", err)
	}
	r := &started{s: s}
	_, err = s.must(ctx, "the run of the branch "+branch, func() (bool, error) {
		list, err := s.gh.runsOf(ctx, sha)
		if len(list) > 0 {
			r.id = list[0].ID
		}
		return r.id != 0, err
	})
	if err != nil {
		return nil, err
	}
	s.runs = append(s.runs, r.id)
	_, err = s.must(ctx, "the job of run "+fmt.Sprint(r.id), func() (bool, error) {
		j, err := r.job(ctx)
		return j.Status != "" && j.Status != "pending", err
	})
	return r, err
}

func (r *started) job(ctx context.Context) (job, error) { return r.s.gh.jobOf(ctx, r.id) }

// taken reports whether a runner has the job. GitHub gives a queued job no runner.
func (r *started) taken(ctx context.Context) (bool, error) {
	j, err := r.job(ctx)
	return j.RunnerName != "" || j.Status == "in_progress" || j.Status == "completed", err
}

// staysQueued reports whether the job goes without a runner for the time that is quiet.
func (r *started) staysQueued(ctx context.Context) (bool, error) {
	_, taken, err := r.s.await(ctx, r.s.Times.Quiet, "a runner that must not come", func() (bool, error) { return r.taken(ctx) })
	return !taken, err
}

// completed waits for the end of the job.
func (r *started) completed(ctx context.Context) (job, time.Duration, error) {
	var j job
	took, err := r.s.must(ctx, "the end of the job", func() (_ bool, err error) {
		j, err = r.job(ctx)
		return j.Status == "completed", err
	})
	return j, took, err
}

// log is that of the completed job, which GitHub has some seconds later.
func (r *started) log(ctx context.Context) (text string, err error) {
	_, err = r.s.must(ctx, "the log of the job", func() (bool, error) {
		j, err := r.job(ctx)
		if err == nil {
			text, err = r.s.gh.logOf(ctx, j.ID)
		}
		return err == nil, unless(err, 404)
	})
	return text, err
}

// cancel ends a job that no runner has.
func (r *started) cancel(ctx context.Context) error { return r.s.cancelRun(ctx, r.id) }

// gate is a step that runs until it is opened, or until the files of the session are removed. It is a file: the job runs on this machine.
type gate struct{ path string }

func (s *session) newGate() gate { return gate{s.path(s.name("gate"))} }

func (g gate) step() step {
	return step{script: fmt.Sprintf("touch '%s.passed'\nuntil [ -e '%s' ] || [ ! -e '%s.passed' ]; do sleep 0.2; done", g.path, g.path, g.path)}
}

// passing reports whether the step runs or has run.
func (g gate) passing() (bool, error) {
	_, err := os.Stat(g.path + ".passed")
	if os.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

func (g gate) open() error { return os.WriteFile(g.path, nil, 0o600) }
