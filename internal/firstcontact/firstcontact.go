// Package firstcontact holds what Remuda assumes about GitHub and actions/runner against GitHub itself: with a token, a repository
// and a runner it registers runners, starts workflow runs, watches both and says of each assumption whether it holds.
package firstcontact

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/findings"
)

// Options say what to check, and where.
type Options struct {
	// Repository is OWNER/NAME. It must have a commit, and nothing in it is changed or run.
	Repository string
	// Token may administer the repository's runners, and write its contents, workflows and actions.
	Token string
	// APIURL is the base of GitHub's REST API. Default: https://api.github.com.
	APIURL string
	// Runner is the directory of an unpacked actions/runner; empty: the newest one is downloaded.
	Runner string
	// OldRunner has a version that GitHub would update, and RefusedRunner one that it refuses. Without them the checks that need them
	// are undecided.
	OldRunner, RefusedRunner string
	// WorkDir gets a directory that is removed at the end. Default: that of temporary files.
	WorkDir string
	// Quick leaves out what takes ten minutes, and Slow adds what takes an hour.
	Quick, Slow bool
	// Only are the names of the checks to make; empty: all.
	Only []string
	// Times are how long to wait. Zero fields have their default.
	Times Times
	// Progress gets a line for each step, and every ten seconds of a wait. Default: nothing.
	Progress io.Writer
	// Transport makes the calls. Default: http.DefaultTransport.
	Transport http.RoundTripper
}

// Times are how long to wait for GitHub. The defaults are several times what GitHub usually takes.
type Times struct {
	// Poll is between two looks at GitHub. Default: 1 s, which costs 3,600 of the 5,000 calls that a token has in an hour.
	Poll time.Duration
	// Patience bounds every wait for something that should happen: a registration, a listener, an assignment, the end of a job.
	// Default: 3 minutes.
	Patience time.Duration
	// Quiet is how long a job must go without a runner to count as not assigned. Default: 1 minute.
	Quiet time.Duration
	// Idle is how long an idle just-in-time runner is watched. Default: 10 minutes.
	Idle time.Duration
	// Flags bounds the wait for the status and busy flags, and for the session of a listener that was killed. Default: 5 minutes.
	Flags time.Duration
	// TokenLife is after how long a remove token counts as expired. Default: what GitHub says, and a minute.
	TokenLife time.Duration
	// Stop is how long a listener has to end on a signal. Default: 35 s, beyond the 30 s that actions/runner takes at most.
	Stop time.Duration
	// Clean bounds the removal of everything that was made. Default: 3 minutes.
	Clean time.Duration
}

func (t Times) withDefaults() Times {
	for at, usual := range map[*time.Duration]time.Duration{
		&t.Poll: time.Second, &t.Patience: 3 * time.Minute, &t.Quiet: time.Minute, &t.Idle: 10 * time.Minute, &t.Flags: 5 * time.Minute,
		&t.Stop: 35 * time.Second, &t.Clean: 3 * time.Minute,
	} {
		if *at == 0 {
			*at = usual
		}
	}
	return t
}

// check decides some assumptions in one go.
type check struct {
	name string
	// does says what happens, for the progress and the documentation.
	does string
	// without, if it is set, says why the check cannot be made with some options; empty: it can.
	without     func(Options) string
	assumptions []findings.Assumption
	run         func(context.Context, *session) error
}

// checks are all of them, in the order in which they are made. The one about times uses what the others measured.
var checks = []check{
	labelsCheck, defaultsCheck, deletionCheck, refusedCheck, signalsCheck, updateCheck, versionCheck, idleCheck, tokenCheck, timesCheck,
}

// Checks are the names of all checks.
func Checks() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// Assumptions are all that the checks decide, by the name of their check.
func Assumptions() map[string][]findings.Assumption {
	all := map[string][]findings.Assumption{}
	for _, c := range checks {
		all[c.name] = c.assumptions
	}
	return all
}

// Report is the result of a run.
type Report struct {
	Repository    string             `json:"repository"`
	APIURL        string             `json:"api_url"`
	RunnerVersion string             `json:"runner_version"`
	StartedAt     time.Time          `json:"started_at"`
	Findings      []findings.Finding `json:"findings"`
}

// Text writes a table of the findings, and more about those that are refuted.
func (r Report) Text(out io.Writer) error {
	return findings.Text(out, fmt.Sprintf("What Remuda assumes, at %s with actions/runner %s", r.APIURL, r.RunnerVersion), r.Findings)
}

// Run makes the checks and removes everything that it made, also when ctx ends. An error of a check leaves its other assumptions
// undecided, and the next check is made, except after a call that did not reach GitHub: then no other check is. The report is
// as complete as it could be made, whatever the error, unless the options are wrong, and what is left on GitHub comes first in the error.
func Run(ctx context.Context, o Options) (report Report, err error) {
	if err := o.complete(); err != nil {
		return report, err
	}
	s, err := newSession(o)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(s.cleanUp(ctx), err) }()
	report = Report{Repository: o.Repository, APIURL: o.APIURL, StartedAt: time.Now().UTC().Truncate(time.Second)}
	if err := s.prepare(ctx); err != nil {
		for _, c := range o.checks() {
			report.Findings = append(report.Findings, s.findings(c, err.Error())...)
		}
		return report, err
	}
	report.RunnerVersion = s.version
	for _, c := range o.checks() {
		report.Findings = append(report.Findings, s.make(ctx, c)...)
	}
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	return report, errors.Join(s.failed...)
}

// checks are those to make.
func (o *Options) checks() []check {
	return slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return len(o.Only) > 0 && !slices.Contains(o.Only, c.name) })
}

// complete fills in defaults and checks what can be checked without GitHub.
func (o *Options) complete() error {
	if owner, name, found := strings.Cut(o.Repository, "/"); !found || owner == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("repository %q is not of the form OWNER/NAME", o.Repository)
	}
	if o.Token == "" {
		return errors.New("the token is empty")
	}
	for _, name := range o.Only {
		if !slices.Contains(Checks(), name) {
			return fmt.Errorf("there is no check %q; there are %s", name, strings.Join(Checks(), ", "))
		}
	}
	for _, dir := range []*string{&o.Runner, &o.OldRunner, &o.RefusedRunner} {
		if err := checkRunner(dir); err != nil {
			return err
		}
	}
	if o.APIURL = strings.TrimRight(o.APIURL, "/"); o.APIURL == "" {
		o.APIURL = "https://api.github.com"
	}
	if u, err := url.Parse(o.APIURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("--api-url %q is not a URL such as https://api.github.com", o.APIURL)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	o.Times = o.Times.withDefaults()
	return nil
}

// checkRunner makes the path of a runner absolute, and refuses a directory that is not an unpacked runner or has a registration.
func checkRunner(dir *string) error {
	if *dir == "" {
		return nil
	}
	path, err := filepath.Abs(*dir)
	if err != nil {
		return fmt.Errorf("find runner: %w", err)
	}
	if _, err := os.Stat(filepath.Join(path, "bin", "Runner.Listener")); err != nil {
		return fmt.Errorf("%s is not an unpacked actions/runner: %w", path, err)
	}
	if _, err := os.Stat(filepath.Join(path, ".runner")); err == nil {
		return fmt.Errorf("the runner in %s is configured: unpack one that is not", path)
	}
	*dir = path
	return nil
}

// newID is short, and the same for everything that one run makes.
func newID() string { return "first-contact-" + strings.ToLower(rand.Text()[:6]) }
