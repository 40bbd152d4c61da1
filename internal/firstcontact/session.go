package firstcontact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/findings"
)

// session is one run of the checks, with all that it made.
type session struct {
	Options
	*findings.Record
	gh      *gitHub
	id      string // begins the names of runners, labels and branches
	dir     string
	version string  // of the runner
	failed  []error // of checks that did not come to their end

	made      int // names given
	listeners []*listener
	branches  []string
	runs      []int64
	left      []string // what could not be removed

	// What registrations and starts took, for the check of times.
	configured, listened []time.Duration
}

func newSession(o Options) (*session, error) {
	dir, err := os.MkdirTemp(o.WorkDir, "first-contact-")
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	return &session{Options: o, gh: newGitHub(o), id: newID(), dir: dir, Record: findings.NewRecord(o.Progress)}, nil
}

// prepare checks that the token may do what the checks need, and gets a runner.
func (s *session) prepare(ctx context.Context) error {
	s.Begin("prepare")
	s.Say("checking the token at %s for %s", s.APIURL, s.Repository)
	if _, err := s.gh.registrationToken(ctx); err != nil {
		return s.gh.firstRefusal(err)
	}
	if s.Runner == "" {
		s.Say("downloading the newest runner")
		dir, err := s.download(ctx)
		if err != nil {
			return fmt.Errorf("give --runner DIR, since the newest runner cannot be downloaded: %w", err)
		}
		s.Runner = dir
	}
	s.version = versionOf(s.Runner)
	s.Say("the runner is %s, and everything made is named %s", s.version, s.id)
	return nil
}

// make makes one check and returns what it decided.
func (s *session) make(ctx context.Context, c check) []findings.Finding {
	s.Begin(c.name)
	if c.without != nil {
		if reason := c.without(s.Options); reason != "" {
			return s.findings(c, reason)
		}
	}
	switch {
	case ctx.Err() != nil:
		return s.findings(c, "it was interrupted")
	case s.gh.away != nil:
		return s.findings(c, "the run ended before, since GitHub was out of reach")
	}
	s.Say("%s", c.does)
	before, otherwise := len(s.runs), "the check did not come that far"
	if err := c.run(ctx, s); err != nil {
		s.Say("the check ends: %v", err)
		s.failed = append(s.failed, fmt.Errorf("check %s: %w", c.name, err))
		otherwise = err.Error()
	}
	if err := s.phase(ctx, func(ctx context.Context) error { return s.endRuns(ctx, s.runs[before:]) }); !isUnreached(err) {
		s.failed = append(s.failed, err) // else the clean-up says what is left
	}
	return s.findings(c, otherwise)
}

// phase does a part of the removal of what was made, in a time of its own.
func (s *session) phase(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Times.Clean)
	defer cancel()
	return do(ctx)
}

// endRuns cancels runs while their listeners are there, which end them at once, and then ends the listeners.
func (s *session) endRuns(ctx context.Context, runs []int64) error {
	var errs []error
	for _, id := range runs {
		errs = append(errs, s.cancelRun(ctx, id))
	}
	for _, l := range s.listeners {
		l.kill()
	}
	s.listeners = nil
	return errors.Join(errs...)
}

// findings are those of a check. What it did not decide is undecided for the given reason.
func (s *session) findings(c check, otherwise string) []findings.Finding {
	return s.Record.Findings(c.name, c.assumptions, otherwise)
}

// name is a new one for a runner, a label or a branch.
func (s *session) name(kind string) string {
	s.made++
	return fmt.Sprintf("%s-%s-%d", s.id, kind, s.made)
}

// await looks at GitHub every Poll until ok, and returns how long that took and whether it came within the limit.
func (s *session) await(ctx context.Context, limit time.Duration, what string, ok func() (bool, error)) (took time.Duration, came bool, err error) {
	return s.Await(ctx, s.Times.Poll, limit, what, ok)
}

// watchEvery is between two looks at this machine, which cost nothing.
const watchEvery = 20 * time.Millisecond

// watch is await for something on this machine.
func (s *session) watch(ctx context.Context, limit time.Duration, what string, ok func() (bool, error)) (took time.Duration, came bool, err error) {
	return s.Await(ctx, watchEvery, limit, what, ok)
}

// must is await for what everything after it needs.
func (s *session) must(ctx context.Context, what string, ok func() (bool, error)) (time.Duration, error) {
	took, came, err := s.await(ctx, s.Times.Patience, what, ok)
	return took, findings.UnlessCame(took, came, err, what)
}

// mustWatch is watch for what everything after it needs.
func (s *session) mustWatch(ctx context.Context, what string, ok func() (bool, error)) (time.Duration, error) {
	took, came, err := s.watch(ctx, s.Times.Patience, what, ok)
	return took, findings.UnlessCame(took, came, err, what)
}

// cleanUp removes everything that was made. What it cannot remove is in its error.
func (s *session) cleanUp(ctx context.Context) error {
	s.Begin("clean up")
	s.Say("removing branches, runs and runners")
	if s.gh.away != nil {
		s.gh.away = nil // it may be back
		// A run that is not cancelled is not deleted either, and then deleteRuns says so.
		_ = s.phase(ctx, func(ctx context.Context) error { return s.endRuns(ctx, s.runs) })
	}
	err := errors.Join(s.phase(ctx, s.deleteBranches), s.phase(ctx, s.deleteRuns), s.phase(ctx, s.deleteRunners))
	if s.gh.away != nil && len(s.left) > 0 {
		err = fmt.Errorf("remove by hand what is left at %s: %s", s.gh.site(), strings.Join(s.left, ", "))
	}
	return errors.Join(err, s.deleteFiles())
}

// remains notes what could not be removed.
func (s *session) remains(what string, err error) error {
	s.left = append(s.left, what)
	return fmt.Errorf("%s is left: %w", what, err)
}

func (s *session) deleteFiles() error {
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("directory is left: %w", err)
	}
	return nil
}

func (s *session) deleteBranches(ctx context.Context) error {
	var errs []error
	for _, branch := range s.branches {
		if err := unless(s.gh.deleteBranch(ctx, branch), 422); err != nil { // it was never made
			errs = append(errs, s.remains("branch "+branch, err))
		}
	}
	return errors.Join(errs...)
}

func (s *session) deleteRuns(ctx context.Context) error {
	var errs []error
	for _, id := range s.runs {
		errs = append(errs, s.deleteRun(ctx, id))
	}
	return errors.Join(errs...)
}

func (s *session) cancelRun(ctx context.Context, id int64) error {
	r, err := s.gh.run(ctx, id)
	if err == nil && r.Status != "completed" {
		err = s.gh.cancelRun(ctx, id)
	}
	if err == nil || statusOf(err) == 409 { // it has completed
		_, _, err = s.await(ctx, s.Times.Stop, fmt.Sprintf("the end of run %d", id), func() (bool, error) {
			r, err := s.gh.run(ctx, id)
			return r.Status == "completed", err
		})
	}
	if err != nil {
		return fmt.Errorf("cancel run %d: %w", id, err)
	}
	return nil
}

// deleteRun waits for the end of a run that was cancelled: GitHub deletes no other.
func (s *session) deleteRun(ctx context.Context, id int64) error {
	_, err := s.must(ctx, fmt.Sprintf("the end of run %d", id), func() (bool, error) {
		err := s.gh.deleteRun(ctx, id)
		return err == nil, unless(err, 403, 409)
	})
	if err != nil {
		return s.remains(fmt.Sprintf("run %d", id), err)
	}
	return nil
}

// deleteRunners removes the registrations with a name of this session. One that still has a job is waited for.
func (s *session) deleteRunners(ctx context.Context) error {
	if s.made == 0 {
		return nil
	}
	list, err := s.gh.runners(ctx)
	if err != nil {
		return s.remains(fmt.Sprintf("runners %s-*", s.id), err)
	}
	var errs []error
	for _, r := range list {
		if !strings.HasPrefix(r.Name, s.id) {
			continue
		}
		_, err := s.must(ctx, "the removal of runner "+r.Name, func() (bool, error) {
			err := s.gh.deleteRunner(ctx, r.ID)
			return err == nil || statusOf(err) == 404, unless(err, 404, 422)
		})
		if err != nil {
			errs = append(errs, s.remains("runner "+r.Name, err))
		}
	}
	return errors.Join(errs...)
}

// path is one in the directory of the session.
func (s *session) path(name string) string { return filepath.Join(s.dir, name) }
