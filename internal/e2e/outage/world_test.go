// Package outage_test has GitHub fail the fleet for ten minutes: the use-cases,
// the client and the stand-in are the real ones, joined without a network, so
// that the minutes of a synctest bubble cost nothing. The test acts for the hosts.
package outage_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/github/webhook"
	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	queue "github.com/remuda-ci/remuda/internal/queue/memory"
	store "github.com/remuda-ci/remuda/internal/store/memory"
)

const (
	repository = "acme/app"
	stranger   = "acme/other" // the client has no token of it yet
	jobPool    = "jobs"
	appID      = 7
)

type world struct {
	t       *testing.T
	store   *store.Store
	compute *memory.Compute
	handler http.Handler
	wire    *wire
	mail    *mailbox
	hosts   *hosts
	fleet   *fleet.Fleet
}

// inWorld lives in a bubble of its own until do is done.
func inWorld(t *testing.T, do func(context.Context, *world)) {
	mail, key := newMailbox(t), newKey(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, mail, key)
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go w.hosts.live(ctx)
		go w.hear(ctx)
		go w.fleet.ServeJobs(ctx)
		go w.fleet.Sweep(ctx)
		synctest.Wait()
		do(ctx, w)
	})
}

func newKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func newWorld(t *testing.T, mail *mailbox, key string) *world {
	t.Helper()
	log := hclog.New(&hclog.LoggerOptions{Output: t.Output()})
	standin, err := githubsim.New(githubsim.Options{StateDir: t.TempDir(), BaseURL: base, Assignment: state.Assignment{Seed: 5, Within: 20 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standin.Close(); err != nil {
			t.Error(err)
		}
	})
	compute, err := memory.New(memory.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, store: store.New(time.Now), compute: compute, handler: standin.Handler(), mail: mail,
		wire: &wire{handler: standin.Handler(), mode: up, calls: map[mode]map[string][]time.Time{}},
	}
	w.hosts = &hosts{w: w, runners: map[string]*runner{}}
	w.control("PUT", "/_standin/apps", map[string]any{"app_id": appID, "private_key": key, "owners": []string{"acme"}}, nil)
	w.deliver(true)
	client, err := github.New(github.Config{
		URL: base, Transport: w.wire, Log: log.Named("github"),
		Apps: []github.App{{AppID: appID, PrivateKey: lifecycle.Secret(key)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	pool := fleet.Pool{ResourceClasses: []string{"large"}, UsageClasses: lifecycle.UsageClasses, Policy: lifecycle.DefaultPolicy()}
	pool.Policy.Reuse = lifecycle.ReuseSameRepository
	w.fleet, err = fleet.New(fleet.Options{
		Store: w.store, Queue: queue.New(time.Now), Compute: compute, GitHub: client, Log: log, Replica: "a",
		Pools:        map[string]fleet.Pool{fleet.DefaultPool: pool, jobPool: pool},
		Classes:      map[string]fleet.Class{"large": {CPU: 2, MemoryMiB: 4096}},
		Repositories: []string{repository, stranger},
		Jobs: &fleet.JobOptions{
			Store: w.store, GitHub: client, Parse: webhook.Parse,
			Pools: map[string]fleet.JobPool{jobPool: {
				JobPool: policy.JobPool{Maximum: 3, UnclaimedTimeout: 2 * time.Minute},
				Labels:  []string{"remuda-small"}, Repositories: []string{"acme/*"},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// control makes a call of the stand-in's own, which is never down.
func (w *world) control(method, path string, body, into any) {
	w.t.Helper()
	if status := call(w.t.Context(), w.t, w.handler, method, path, "test", body, into); status >= 300 || status == 0 {
		w.t.Fatalf("%s %s: %d", method, path, status)
	}
}

// deliver has webhooks arrive, or all be lost.
func (w *world) deliver(arrive bool) {
	lose := 1
	if arrive {
		lose = 0
	}
	w.control("PUT", "/_standin/webhooks", map[string]any{
		"target": w.mail.url, "secret": "it is not checked here", "app_id": appID, "lose_every": lose}, nil)
}

// hear takes what the mailbox has, until ctx ends.
func (w *world) hear(ctx context.Context) {
	for ctx.Err() == nil {
		for _, m := range w.mail.take() {
			webhook, err := webhook.Parse(m.event, m.id, m.body, time.Now())
			if err == nil {
				err = w.fleet.TakeWebhook(ctx, webhook, time.Now())
			}
			if err != nil && !errors.Is(err, lifecycle.ErrWebhookIgnored) && ctx.Err() == nil {
				w.t.Errorf("webhook %s: %v", m.event, err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// start starts a run whose jobs take so long, each on a runner with the labels.
// An id of 0 is any.
func (w *world) start(id int, label string, takes ...time.Duration) {
	w.t.Helper()
	var jobs strings.Builder
	for i, d := range takes {
		fmt.Fprintf(&jobs, "  j%d: {name: %s, runs-on: [%q], steps: [{run: 'true'}]}\n", i, d, label)
	}
	body := map[string]any{"repository": repository, "workflow": "on: push\njobs:\n" + jobs.String()}
	if id != 0 {
		body["run_id"] = id
	}
	w.control("POST", "/_standin/runs", body, nil)
}

func (w *world) records(states ...lifecycle.State) []lifecycle.Record {
	page, err := w.store.ListInstances(context.Background(), lifecycle.Filter{States: states}, lifecycle.PageOf{Limit: 1000})
	if err != nil {
		w.t.Error(err)
	}
	return page.Items
}

// of lists the hosts that serve a run.
func (w *world) of(run string) []lifecycle.Record {
	return slices.DeleteFunc(w.records(), func(r lifecycle.Record) bool { return r.RunID != run || r.State == lifecycle.StateTerminated })
}

func (w *world) pooled() (n int) {
	for _, r := range w.records(lifecycle.StateIdle) {
		if r.Pooled() {
			n++
		}
	}
	return n
}

// registered are the names of the runners that GitHub has.
func (w *world) registered() (names []string) {
	var got struct{ Runners []struct{ Name string } }
	w.control("GET", "/_standin/runners", nil, &got)
	for _, r := range got.Runners {
		names = append(names, r.Name)
	}
	return names
}

func (w *world) provision(ctx context.Context, of, run string, count int, patience time.Duration) error {
	p, err := w.fleet.NewProvision(fleet.Demand{Repository: of, RunID: run, RequestID: "q", Spec: lifecycle.Spec{Count: count}})
	if err != nil {
		return err
	}
	return w.fleet.Drive(ctx, p, patience)
}

func (w *world) release(ctx context.Context, run string, waits bool) {
	w.t.Helper()
	if err := w.fleet.Drive(ctx, w.fleet.NewRelease(repository, run, 0, waits), time.Minute); err != nil {
		w.t.Fatalf("release %s: %v", run, err)
	}
}

// until waits for something, at most so long.
func (w *world) until(what string, most time.Duration, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if ok() {
			return
		}
	}
	w.t.Fatalf("not within %s: %s", most, what)
}
