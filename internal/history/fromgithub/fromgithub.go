// Package fromgithub reads the jobs of an owner's repositories from the GitHub API, within its limits, and goes on where an earlier reading ended.
package fromgithub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/google/go-github/v62/github"

	"github.com/remuda-ci/remuda/internal/history"
)

// Source is what is read.
type Source struct {
	// Client calls the API, with a token that may read Actions of the repositories.
	Client *api.Client
	// Of is an owner, "acme", or one repository, "acme/app".
	Of string
	// Since and Until bound when the runs were created.
	Since, Until time.Time
	// Rows are where jobs are kept while they are read, and where an earlier reading kept them; nil: they are not.
	Rows *Rows
	// Progress is called with what is done next, for people; nil: nothing is.
	Progress func(what string)
	// Now and Sleep are the clock by which limits are waited for.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
}

const (
	// callTimeout bounds a call. GitHub itself gives up after 10 s.
	callTimeout = 30 * time.Second
	// tries is how often a call is made that fails for a reason which passes, and again how long it waits before the first repeat. Each
	// other repeat waits for twice as long.
	tries, again = 6, 2 * time.Second
	// reserve are the calls of an hour that are left to others with the same token.
	reserve = 200
	// perPage is the most that GitHub lists at once.
	perPage = 100
	// mostRuns is how many runs GitHub lists for one range of times, whatever the page ("List workflow runs for a repository"). Whether it
	// counts more than those is not said, so as many may be all or the first of more.
	mostRuns = 1000
	// slack is added to the time at which GitHub says that a limit ends: clocks differ.
	slack = 5 * time.Second
)

// NewClient is a client for the API at a URL, with a token. The URL may be empty, for github.com, and transport nil, for the usual one.
func NewClient(url, token string, transport http.RoundTripper) (*api.Client, error) {
	if transport == nil {
		transport = http.DefaultTransport
	}
	c := api.NewClient(&http.Client{Timeout: callTimeout, Transport: bounded{transport}, CheckRedirect: stay}).WithAuthToken(token)
	if url == "" {
		return c, nil
	}
	base, err := c.BaseURL.Parse(strings.TrimRight(url, "/") + "/")
	switch {
	case err != nil:
		return nil, errors.New("the URL of the API cannot be parsed; write https://api.github.com or https://HOST/api/v3") // it may hold a password
	case base.User != nil:
		return nil, errors.New("the URL of the API has a user or a password before its host, which errors would show; leave them out: the token is enough")
	case base.Scheme != "https" && !loopback(base.Hostname()):
		return nil, fmt.Errorf("the URL of the API, %s, would send the token in plain text; write https", base.Redacted())
	}
	c.BaseURL = base
	return c, nil
}

func loopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// Read reads the jobs of all runs that were created in the time and are over. An error leaves what was read in Rows.
func (s *Source) Read(ctx context.Context) error {
	repositories, err := s.repositories(ctx)
	if err != nil {
		return err
	}
	for i, name := range repositories {
		s.say("%s: repository %d of %d", name, i+1, len(repositories))
		err := s.runs(ctx, name, s.Since.UTC().Truncate(time.Second), s.Until.UTC().Truncate(time.Second))
		if err != nil {
			return fmt.Errorf("read the runs of %s: %w", name, err)
		}
	}
	return nil
}

// repositories are those of the owner, by name.
func (s *Source) repositories(ctx context.Context) (names []string, err error) {
	if strings.Contains(s.Of, "/") {
		return []string{s.Of}, nil
	}
	s.say("listing the repositories of %s", s.Of)
	list := func(page int) ([]*api.Repository, *api.Response, error) {
		return s.Client.Repositories.ListByOrg(ctx, s.Of, &api.RepositoryListByOrgOptions{ListOptions: api.ListOptions{Page: page, PerPage: perPage}})
	}
	for page := 1; page > 0; {
		var found []*api.Repository
		next, err := s.call(ctx, func() (resp *api.Response, err error) {
			found, resp, err = list(page)
			return resp, err
		})
		if page == 1 && gone(err) { // it is no organization
			list = func(page int) ([]*api.Repository, *api.Response, error) {
				return s.Client.Repositories.ListByUser(ctx, s.Of, &api.RepositoryListByUserOptions{ListOptions: api.ListOptions{Page: page, PerPage: perPage}})
			}
			next, err = s.call(ctx, func() (resp *api.Response, err error) {
				found, resp, err = list(page)
				return resp, err
			})
		}
		if err != nil {
			return nil, fmt.Errorf("list the repositories of %s: %w", s.Of, err)
		}
		for _, r := range found {
			if !history.IsRepository(r.GetFullName()) {
				return nil, fmt.Errorf("list the repositories of %s: %.80q is not owner/name", s.Of, r.GetFullName())
			}
			names = append(names, r.GetFullName())
		}
		if page, err = following(page, next); err != nil {
			return nil, fmt.Errorf("list the repositories of %s: %w", s.Of, err)
		}
	}
	slices.Sort(names)
	return names, nil
}

// runs reads the runs of a range of times, both ends included. A range with more of them than GitHub lists is read in halves.
func (s *Source) runs(ctx context.Context, repository string, from, until time.Time) error {
	owner, name, _ := strings.Cut(repository, "/")
	for page := 1; page > 0; {
		var found *api.WorkflowRuns
		next, err := s.call(ctx, func() (resp *api.Response, err error) {
			found, resp, err = s.Client.Actions.ListRepositoryWorkflowRuns(ctx, owner, name, &api.ListWorkflowRunsOptions{
				Status: "completed", Created: from.Format(time.RFC3339) + ".." + until.Format(time.RFC3339), ListOptions: api.ListOptions{Page: page, PerPage: perPage},
			})
			return resp, err
		})
		if hidden(err) {
			s.say("%s: it has no Actions, or the token may not read them", repository)
			return nil
		}
		if err != nil {
			return err
		}
		if found.GetTotalCount() >= mostRuns && until.Sub(from) >= 2*time.Second {
			middle := from.Add(until.Sub(from) / 2).Truncate(time.Second)
			if err := s.runs(ctx, repository, from, middle); err != nil {
				return err
			}
			return s.runs(ctx, repository, middle.Add(time.Second), until)
		}
		for _, run := range found.WorkflowRuns {
			if err := s.run(ctx, owner, name, run.GetID()); err != nil {
				return err
			}
		}
		if page, err = following(page, next); err != nil {
			return err
		}
	}
	return nil
}

// run reads the jobs of a run, of all its attempts, unless an earlier reading has.
func (s *Source) run(ctx context.Context, owner, name string, id int64) error {
	if s.Rows.has(id) {
		return nil
	}
	var jobs []history.Job
	for page := 1; page > 0; {
		var found *api.Jobs
		next, err := s.call(ctx, func() (resp *api.Response, err error) {
			found, resp, err = s.Client.Actions.ListWorkflowJobs(ctx, owner, name, id, &api.ListWorkflowJobsOptions{
				Filter: "all", ListOptions: api.ListOptions{Page: page, PerPage: perPage},
			})
			return resp, err
		})
		if gone(err) { // it was deleted since it was listed
			s.say("%s/%s: run %d is not there any more", owner, name, id)
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the jobs of run %d: %w", id, err)
		}
		for _, j := range found.Jobs {
			jobs = append(jobs, jobOf(owner+"/"+name, j))
		}
		if page, err = following(page, next); err != nil {
			return fmt.Errorf("read the jobs of run %d: %w", id, err)
		}
	}
	return s.Rows.add(id, jobs)
}

// jobOf is a job as a history has it. GitHub gives a start to jobs that no runner had.
func jobOf(repository string, j *api.WorkflowJob) history.Job {
	made := history.Job{
		ID: j.GetID(), Repository: repository, RunID: strconv.FormatInt(j.GetRunID(), 10), Labels: j.Labels,
		Created: j.GetCreatedAt().UTC(), Completed: j.GetCompletedAt().UTC(),
	}
	if j.GetRunnerID() != 0 {
		made.Started = j.GetStartedAt().UTC()
	}
	return made
}

func (s *Source) say(format string, args ...any) {
	if s.Progress != nil {
		s.Progress(fmt.Sprintf(format, args...))
	}
}

// gone reports whether GitHub knows nothing of what was asked for, or does not show it.
func gone(err error) bool { return statusOf(err) == http.StatusNotFound }

// hidden reports whether GitHub has nothing to show to this token. A limit, which has the same status, is another error.
func hidden(err error) bool { return gone(err) || statusOf(err) == http.StatusForbidden }

// RefusedError is an answer of GitHub that is no success.
type RefusedError struct {
	// Status is that of HTTP, and Message what GitHub says beside it; empty: nothing.
	Status  int
	Message string
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("GitHub answers %d %s", e.Status, http.StatusText(e.Status))
	if e.Message == "" {
		return strings.TrimSpace(text)
	}
	return fmt.Sprintf("%s: %.200s", strings.TrimSpace(text), e.Message)
}

// forPeople is an error of a call without the address and the JSON of the answer.
func forPeople(err error) error {
	var answered *api.ErrorResponse
	var here *refusal
	switch {
	case errors.As(err, &here):
		return here
	case errors.As(err, &answered):
		return &RefusedError{answered.Response.StatusCode, answered.Message}
	}
	return err
}

// statusOf is that of GitHub's refusal; 0: the error is none.
func statusOf(err error) int {
	var refused *RefusedError
	if errors.As(forPeople(err), &refused) {
		return refused.Status
	}
	return 0
}
