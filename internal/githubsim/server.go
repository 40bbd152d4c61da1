// Package githubsim is a stand-in for GitHub, for one machine: the REST endpoints the project calls, workflow runs that wait for
// runners as on GitHub, webhooks and ID tokens. Its other half is the stand-in runner, laid out on disk like actions/runner.
//
// It trusts every caller that can reach it: any Authorization header passes for a person's, and the calls under /_standin need none. Serve it
// on loopback. Only what claims to come from a GitHub App, its JSON web token or a token made with it, is checked.
package githubsim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/githubsim/broker"
	"github.com/remuda-ci/remuda/internal/githubsim/gitdata"
	"github.com/remuda-ci/remuda/internal/githubsim/journal"
	"github.com/remuda-ci/remuda/internal/githubsim/oidc"
	"github.com/remuda-ci/remuda/internal/githubsim/payload"
	"github.com/remuda-ci/remuda/internal/githubsim/rest"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
	"github.com/remuda-ci/remuda/internal/githubsim/webhook"
)

// The times of the stand-in that no option changes. Tests steer them through Options.Now and Tick.
const (
	// TokenLife is how long registration and remove tokens are good for, as GitHub documents.
	TokenLife = time.Hour
	// PickUpTime is how long a runner has to take an assigned job before the job goes back to the queue, as on GitHub.
	PickUpTime = 60 * time.Second
	// QueueTime is how long a job waits in the queue for a runner before it fails, as GitHub documents.
	QueueTime = 24 * time.Hour
	// CancelTime is how long a job may take to stop after a cancel before it is called cancelled without its runner's word.
	CancelTime = 5 * time.Minute

	tickEvery    = 500 * time.Millisecond // small beside the times above, dear enough not to be smaller
	shutdownTime = 5 * time.Second        // for calls under way when Serve ends; polls are ended at once
)

// Options configure a Server.
type Options struct {
	StateDir string           // where all state is kept; made if missing, readable by its owner only
	Log      hclog.Logger     // default: none
	Now      func() time.Time // default: time.Now
	BaseURL  string           // how clients reach the server, for URLs in answers; default: the Host of the last call
	// RateLimit is the number of GitHub calls of each credential in an hour. Default 1,000,000: no test meets it. GitHub gives 5,000 to 15,000.
	RateLimit int
	// RegistrationLimit is the number of registrations of each credential in an hour. Default 10,000, as GitHub gives.
	RegistrationLimit int
	// Times are those of GitHub and of its runner. Default: the real ones, except that nothing is slow.
	Times Times
	// Assignment is how jobs are given to runners. Default: the oldest first, at once.
	Assignment state.Assignment
	// OldRunnerFlow is the flow of config.sh before use_v2_flow, in which "remove" takes a runner that is gone for removed. Default: the
	// runner-admin flow, in which that is an error.
	OldRunnerFlow bool
}

// Times are how long things take.
type Times = state.Times

// QuickTimes are for tests and demos that wait in real time.
var QuickTimes = state.QuickTimes

// Server is the stand-in. All its state is behind one mutex; no call to the outside is made with it held.
type Server struct {
	log   hclog.Logger
	now   func() time.Time
	times Times
	dir   string
	// assignment is Options.Assignment.
	assignment state.Assignment
	handler    http.Handler
	outbox     *webhook.Outbox
	oidc       *oidc.Issuer
	calls      *rest.Calls
	faults     *rest.Faults
	limit      *rest.RateLimiter
	broker     *broker.Broker
	logs       *state.JobLogs
	git        *gitdata.Objects
	stop       chan struct{} // closed by Close
	stopOnce   sync.Once
	maxRuns    int
	oldFlow    bool
	done       sync.WaitGroup

	mu       sync.Mutex
	baseURL  string
	fixedURL bool
	journal  *journal.Journal
	dirty    map[journal.Key]any // rows to be written when the call that changed them ends; nil is a deletion
	runners  map[int64]*state.Runner
	runs     map[int64]*state.Run
	// protected are the protected branches, by repository in lower case.
	protected map[string][]string
	gitDir    string // see standinGit
	jobs      map[int64]*state.Job
	queue     []*state.Job // queued and not assigned, oldest first
	tokens    map[string]*state.Token
	hook      webhook.Hook
	counters  map[string]int64
	apps      map[int64]*state.App
	releases  []state.Release
	checks    []*payload.Check
	versions  state.Versions
	removed   map[string]bool // credentials of registrations that were deleted since the server began

	extraGroups []group
	started     time.Time
}

// New opens the state in o.StateDir and starts the stand-in's clock. Close ends it.
func New(o Options) (*Server, error) {
	if o.StateDir == "" {
		return nil, errors.New("new GitHub stand-in: no state directory")
	}
	if err := os.MkdirAll(filepath.Join(o.StateDir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	s := &Server{
		log: o.Log, now: o.Now, times: o.Times.WithDefaults(), dir: o.StateDir, stop: make(chan struct{}), maxRuns: maxRuns, oldFlow: o.OldRunnerFlow, assignment: o.Assignment,
		baseURL: o.BaseURL, fixedURL: o.BaseURL != "",
		dirty: map[journal.Key]any{}, runners: map[int64]*state.Runner{}, runs: map[int64]*state.Run{}, protected: map[string][]string{}, jobs: map[int64]*state.Job{},
		tokens: map[string]*state.Token{}, counters: map[string]int64{}, removed: map[string]bool{}, apps: map[int64]*state.App{}, releases: state.KnownReleases,
	}
	if s.log == nil {
		s.log = hclog.NewNullLogger()
	}
	if s.now == nil {
		s.now = time.Now
	}
	if o.RateLimit == 0 {
		o.RateLimit = 1_000_000
	}
	s.started = s.now()
	s.outbox = webhook.NewOutbox(s.log.Named("webhooks"), s.now)
	s.oidc = oidc.New(filepath.Join(o.StateDir, "oidc-key.pem"))
	s.calls, s.faults, s.limit = rest.NewCalls(), rest.NewFaults(), rest.NewRateLimiter(o.RateLimit, cmp.Or(o.RegistrationLimit, 10_000), s.now)
	s.broker = broker.New(brokerState{s}, s.times)
	s.logs = state.NewJobLogs(filepath.Join(o.StateDir, "logs"))
	s.git = gitdata.New(s.now, func() string { return s.lockedSite().URL }, s.pushed)
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("load state of the GitHub stand-in: %w", err)
	}
	s.handler = s.routes()
	s.done.Go(func() { s.outbox.Run(s.stop) })
	s.done.Go(s.tickLoop)
	return s, nil
}

// site is the stand-in as its answers name it. The caller holds the lock.
func (s *Server) site() payload.Site { return payload.Site{URL: s.baseURL, Since: s.started} }

func (s *Server) lockedSite() payload.Site {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.site()
}

// Handler serves the whole of it.
func (s *Server) Handler() http.Handler { return s.handler }

// Serve answers on ln until ctx ends, then closes the server.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("serve GitHub stand-in on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
		s.endPolls()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		if srv.Shutdown(bounded) != nil {
			err = srv.Close()
		}
		<-failed // it closes ln, also when it had not yet begun
	}
	return errors.Join(err, s.Close())
}

func (s *Server) endPolls() { s.stopOnce.Do(func() { close(s.stop) }) }

// Close ends the polls and the clock and closes the state. The handler must not be called after it.
func (s *Server) Close() error {
	s.endPolls()
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.Close()
}

func (s *Server) tickLoop() {
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			s.Tick()
		}
	}
}

// change runs f with the state locked, hands out jobs, and writes what was changed. The answer to a call is given after it.
func (s *Server) change(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := f()
	s.dispatch()
	return errors.Join(err, s.flush())
}

func (s *Server) put(kind string, id int64, row any) {
	s.dirty[journal.Key{Kind: kind, ID: strconv.FormatInt(id, 10)}] = row
}

// flush writes the changed rows. When it fails they stay marked, and go with the next change.
func (s *Server) flush() error {
	if len(s.dirty) == 0 {
		return nil
	}
	entries := make([]journal.Entry, 0, len(s.dirty))
	for k, row := range s.dirty {
		value, err := json.Marshal(row)
		if err != nil {
			return fmt.Errorf("save %s %s: %w", k.Kind, k.ID, err)
		}
		entries = append(entries, journal.Entry{Kind: k.Kind, ID: k.ID, Value: value})
	}
	if err := s.journal.Write(entries); err != nil {
		s.log.Error("cannot save state", "dir", s.dir, "error", err)
		return fmt.Errorf("save state: %w", err)
	}
	clear(s.dirty)
	return nil
}

// nextID counts up from first. Ids are never given twice.
func (s *Server) nextID(name string, first int64) int64 {
	n := max(s.counters[name]+1, first)
	s.counters[name] = n
	s.dirty[journal.Key{Kind: state.KindCounter, ID: name}] = n
	return n
}
