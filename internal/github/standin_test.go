package github_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/githubsim/openapitest"
	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const repository = "acme/app"

// standin is a running GitHub stand-in.
type standin struct {
	t   *testing.T
	url string
}

func startStandin(t *testing.T, change ...func(*githubsim.Options)) standin {
	t.Helper()
	options := githubsim.Options{StateDir: t.TempDir(), Times: githubsim.QuickTimes}
	for _, c := range change {
		c(&options)
	}
	server, err := githubsim.New(options)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return standin{t, "http://" + listener.Addr().String()}
}

// call makes a call of the stand-in's own.
func (s standin) call(want int, method, path, bearer string, body, into any) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != want {
		s.t.Fatalf("%s %s: got %s", method, path, response.Status)
	}
	if into == nil {
		return
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		s.t.Fatal(err)
	}
}

// register registers a runner as config.sh does, and returns its credential.
func (s standin) register(r lifecycle.Registration, name string) protocol.Registered {
	s.t.Helper()
	var made protocol.Registered
	s.call(201, "POST", protocol.PathRegister, r.Secret.Reveal(),
		protocol.Register{URL: r.URL, Name: name, Labels: []string{"box"}}, &made)
	return made
}

func TestAgainstTheStandIn(t *testing.T) {
	for _, base := range []string{"", "/api/v3"} {
		t.Run("base "+base, func(t *testing.T) {
			s := startStandin(t)
			c := newClient(t, github.Config{URL: s.url + base, Transport: openapitest.Check(t, nil)})
			registration, err := c.RegistrationToken(t.Context(), repository)
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(registration.ExpiresAt); left < 10*time.Minute {
				t.Errorf("the token is good for %s", left)
			}
			names := []string{"remuda-1-i-1", "remuda-1-i-2", "remuda-1-i-3"}
			var ids []int64
			for _, name := range names {
				ids = append(ids, s.register(registration, name).ID)
			}
			checkList(t, c, names)
			found, err := c.FindRunner(t.Context(), repository, names[1])
			if d := cmp.Diff(lifecycle.Runner{ID: ids[1], Name: names[1]}, found); err != nil || d != "" {
				t.Errorf("find: %v %s", err, d)
			}
			if err := c.DeleteRunner(t.Context(), repository, ids[1]); err != nil {
				t.Error(err)
			}
			if err := c.DeleteRunner(t.Context(), repository, ids[1]); err != nil {
				t.Errorf("delete again: %v", err)
			}
			if _, err := c.FindRunner(t.Context(), repository, names[1]); !errors.Is(err, lifecycle.ErrNotFound) {
				t.Errorf("find what is gone: %v", err)
			}
			remove, err := c.RemoveToken(t.Context(), repository)
			if err != nil {
				t.Fatal(err)
			}
			s.call(204, "POST", protocol.PathRemove, remove.Secret.Reveal(), protocol.Remove{URL: remove.URL, ID: ids[0]}, nil)
			checkList(t, c, names[2:])
		})
	}
}

// checkList lists the runners in pages of two.
func checkList(t *testing.T, c *github.Client, want []string) {
	t.Helper()
	var got []string
	for page := (lifecycle.PageOf{Limit: 2}); ; {
		list, err := c.Runners(t.Context(), repository, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.Items {
			got = append(got, r.Name)
		}
		if page.After = list.Next; page.After == "" {
			break
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// listening starts a stand-in with a runner that has a session.
func listening(t *testing.T) (standin, *github.Client, protocol.Registered, protocol.Session) {
	t.Helper()
	s := startStandin(t)
	c := newClient(t, github.Config{URL: s.url + "/api/v3", Transport: openapitest.Check(t, nil)})
	registration, err := c.RegistrationToken(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	runner := s.register(registration, "remuda-1-i-1")
	var session protocol.Session
	s.call(201, "POST", protocol.PathSession, runner.Credential, nil, &session)
	return s, c, runner, session
}

// The labels that are set bring the jobs, whatever the runner registered with.
func TestLabelsBringJobs(t *testing.T) {
	s, c, runner, session := listening(t)
	for _, try := range []string{"once", "again"} {
		if err := c.SetLabels(t.Context(), repository, runner.ID, []string{"4711", "fast"}); err != nil {
			t.Errorf("%s: %v", try, err)
		}
	}
	var m protocol.Message
	s.call(201, "POST", "/_standin/runs", "", map[string]any{"repository": repository,
		"workflow": "on: push\njobs:\n  j: {runs-on: [fast, '4711'], steps: [{run: 'true'}]}\n"}, nil)
	s.call(200, "GET", protocol.PathMessages+"?session="+session.ID, runner.Credential, nil, &m)
	if m.Kind != protocol.MessageJob {
		t.Errorf("message %+v", m)
	}
	if err := c.SetLabels(t.Context(), repository, runner.ID+1, []string{"4711"}); !errors.Is(err, lifecycle.ErrNotFound) {
		t.Errorf("a runner that is not there: %v", err)
	}
}

func TestTheStandInKeepsBusyRunners(t *testing.T) {
	s, c, runner, session := listening(t)
	s.call(201, "POST", "/_standin/runs", "", map[string]any{"repository": repository,
		"workflow": "on: push\njobs:\n  j: {runs-on: box, steps: [{run: 'true'}]}\n"}, nil)
	s.call(200, "GET", protocol.PathMessages+"?session="+session.ID, runner.Credential, nil, nil)
	want := lifecycle.Runner{ID: runner.ID, Name: "remuda-1-i-1", Online: true, Busy: true}
	got, err := c.FindRunner(t.Context(), repository, "remuda-1-i-1")
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("find: %v %s", err, d)
	}
	if err := c.DeleteRunner(t.Context(), repository, runner.ID); !errors.Is(err, lifecycle.ErrBusy) {
		t.Errorf("delete: %v", err)
	}
}

func TestTheStandInsFaults(t *testing.T) {
	s := startStandin(t)
	c := newClient(t, github.Config{URL: s.url, Transport: openapitest.Check(t, nil)})
	fail := func(status int) {
		s.call(204, "POST", "/_standin/faults", "", map[string]any{
			"route": "POST /repos/{owner}/{repo}/actions/runners/registration-token", "status": status, "count": 1}, nil)
	}
	fail(500)
	if _, err := c.RegistrationToken(t.Context(), repository); err != nil {
		t.Errorf("a second try after 500: %v", err)
	}
	fail(503)
	_, err := c.RegistrationToken(t.Context(), "acme/other")
	var unavailable *lifecycle.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.RetryAfter != time.Second {
		t.Errorf("503 with Retry-After: 1: got %v", err)
	}
}
