package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/fleet/sweeps"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/instrument"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/page"
	"github.com/remuda-ci/remuda/internal/page/signin"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/server/idtoken"
	"github.com/remuda-ci/remuda/internal/settings"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/telemetry"
	"github.com/remuda-ci/remuda/internal/tracing"
	"github.com/remuda-ci/remuda/internal/web"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// drainWithin is how long calls may go on after a signal. A call that is cut off then has its progress in the
// store, and a sweep continues it. The rest of stopWithin is for dev, which ends its hosts and its stand-in.
const drainWithin = 3 * time.Second

// daemon is controld, wired: the adapters that a configuration names, the
// use-cases over them, and the servers in front.
type daemon struct {
	log      hclog.Logger
	metrics  *telemetry.Metrics
	tracing  *tracing.Tracing // nil: nothing is traced
	backends *backends
	hub      *github.Client
	fleet    *fleet.Fleet
	presence *sweeps.Presence // how many replicas share GitHub's limits
	grpc     *server.Server
	web      *web.Server
	ready    func(context.Context) error // the check of the store that both servers answer with
}

// newDaemon builds everything. Nothing runs before serve. No other process may have the same replica name.
func newDaemon(ctx context.Context, c *config.Config, in *inputs.Inputs, replica string, stderr io.Writer) (*daemon, error) {
	log := telemetry.NewLogger("controld", string(c.Log.Level), string(c.Log.Format), stderr)
	for _, warning := range append(c.Warnings(), in.Warnings...) {
		log.Warn("configuration warning", logkey.Warning, warning)
	}
	b, err := newBackends(ctx, c, in, log, false)
	if err != nil {
		return nil, err
	}
	return assemble(ctx, c, in, b, replica, log)
}

// assemble makes a daemon over backends, which it closes after an error. It reads no file and changes nothing, so config check
// does it too, over backends that do nothing.
func assemble(ctx context.Context, c *config.Config, in *inputs.Inputs, b *backends, replica string, log hclog.Logger) (_ *daemon, err error) {
	d := &daemon{log: log, backends: b, metrics: telemetry.NewMetrics()}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if d.tracing, err = newTracing(ctx, c, in, replica, log); err != nil {
		return nil, err
	}
	d.presence = &sweeps.Presence{
		Replica: replica, Version: telemetry.Version, StartedAt: time.Now(), ClockOffset: b.clockOffset, Store: d.records(), Log: d.log.Named("presence"),
	}
	if d.hub, err = newHub(c, in, d.presence.Count, d.log); err != nil {
		return nil, err
	}
	o, err := d.fleetOptions(ctx, c, replica)
	if err != nil {
		return nil, err
	}
	if d.fleet, err = fleet.New(o); err != nil {
		return nil, err
	}
	d.ready = (&readiness{store: d.records(), clock: d.fleet.CheckClock}).check
	return d, d.front(c, in)
}

// fleetOptions are what the use-cases are made with.
func (d *daemon) fleetOptions(ctx context.Context, c *config.Config, replica string) (fleet.Options, error) {
	hosts, err := settings.Pools(c)
	if err != nil {
		return fleet.Options{}, &configError{err}
	}
	idle, err := d.scaleDown(c)
	if err != nil {
		return fleet.Options{}, err
	}
	services, err := d.serviceOptions(ctx, c)
	if err != nil {
		return fleet.Options{}, err
	}
	records, metrics, p := d.records(), d.metrics, d.backends
	prices := c.Cost.List(p.region)
	return fleet.Options{
		Store:   records,
		Guards:  records,
		Queue:   instrument.Queue{Queue: p.queue, Calls: d.calls("queue")},
		Compute: instrument.Compute{Compute: p.compute, Calls: d.calls("compute")},
		GitHub:  instrument.GitHub{GitHub: d.hub, Calls: d.calls("github")},
		Sources: instrument.Sources{GitHubSources: d.hub, Calls: d.calls("github")},
		Jobs:    jobOptions(c, records, d.hub), Releases: runnerReleases(c, d.hub),
		Workers: workerOptions(c, records),
		Pools:   hosts, Classes: settings.Classes(c), Sells: p.sells, Outside: p.outside, Repositories: sweptRepositories(c),
		TemplateVersion: p.templateVersion, Exhausted: p.exhausted, LaunchRate: p.launchRate, AtOnce: p.atOnce, Ensure: p.ensure, HostKey: p.hostKey, Notices: instrument.Notices(p.notices, metrics),
		Checks:    checkOptions(c, records, instrument.GitHubChecks{GitHubChecks: d.hub, Calls: d.calls("github")}),
		ScaleDown: idle, Services: services, Limits: c.Limits.Policy(), Budgets: c.Limits.BudgetList(), Prices: &prices, CallsMade: callsMade(p.calls),
		ClockOffset: p.clockOffset, Tracer: d.tracing.Operations(),
		Replica: replica, Log: d.log.Named("fleet"), Observer: metrics, Timing: settings.Timing(c.Sweeps),
	}, nil
}

// records is the store whose calls are counted.
func (d *daemon) records() store.Store { return d.backends.store.Observed(d.calls("store").Called) }

// calls counts the calls of a port.
func (d *daemon) calls(port string) instrument.Calls {
	return instrument.Calls{Metrics: d.metrics, Port: port}
}

// front builds the servers.
func (d *daemon) front(c *config.Config, in *inputs.Inputs) error {
	calls, err := d.serverOptions(c, in)
	if err != nil {
		return err
	}
	if d.grpc, err = server.New(calls); err != nil {
		return err
	}
	o, err := d.webOptions(c, in)
	if err != nil {
		return err
	}
	d.web, err = web.New(o)
	return err
}

// serverOptions are what the gRPC server is made with.
func (d *daemon) serverOptions(c *config.Config, in *inputs.Inputs) (o server.Options, err error) {
	o = server.Options{
		Fleet: d.fleet, Log: d.log.Named("grpc"), Metrics: d.metrics, Ready: d.ready, TLS: in.TLS, StatsHandler: d.tracing.RPCs(),
		Replica: d.presence.Replica, Replicas: d.presence.Alive,
		Credentials: func() []server.Credential { return inputs.Credentials(c, d.presence.StartedAt) },
	}
	o.Callers, err = callers(c, in, d.records(), d.fleet)
	return o, err
}

// webOptions are what the HTTP server is made with. The gRPC server must be there, whose calls workers make over HTTP.
func (d *daemon) webOptions(c *config.Config, in *inputs.Inputs) (o web.Options, err error) {
	o = web.Options{Ready: d.ready, Metrics: d.gauges(c).Before(d.metrics.Handler()), Webhooks: d.webhooks(in), Log: d.log.Named("http")}
	if len(c.Services) > 0 {
		o.Workers = web.NewWorkerRoutes(d.grpc.Workers(), d.log.Named("workers"))
	}
	o.Scale = d.scale(c)
	if c.Page != nil {
		o.PagePaths = page.Paths
		o.Page, err = page.New(d.pageOptions(c))
	}
	return o, err
}

// pageOptions are what the page is made with. It calls the gRPC server in this process.
func (d *daemon) pageOptions(c *config.Config) page.Options {
	o := page.Options{
		Fleet: remudav1.NewFleetServiceClient(d.grpc.Viewer("the page")),
		Workflow: func(token string) remudav1.FleetServiceClient {
			return remudav1.NewFleetServiceClient(d.grpc.Workflow(token))
		},
		Version: telemetry.Version, Log: d.log.Named("page"),
	}
	if file := c.Page.TokenFile; file != "" {
		o.Tokens = server.TokenFile(file)
	}
	if oidc := c.Page.OIDC; oidc != nil {
		o.SignIn = signInOptions(oidc)
	}
	return o
}

// signInOptions are how people sign in to the page.
func signInOptions(c *config.OIDC) *signin.Options {
	o := &signin.Options{
		Issuer: c.Issuer, ClientID: c.ClientID, RedirectURL: c.RedirectURL, Keys: inputs.SessionKeys(c.SessionKeyFile),
		Allowed: signin.Allowed{Emails: lower(c.Emails), Domains: lower(c.Domains), Groups: c.Groups, GroupsClaim: c.GroupsClaim},
	}
	if c.ClientSecretFile != "" {
		o.ClientSecret = inputs.ClientSecret(c.ClientSecretFile)
	}
	return o
}

func lower(all []string) (low []string) {
	for _, one := range all {
		low = append(low, strings.ToLower(one))
	}
	return low
}

// gauges are those that are counted when the metrics are read.
func (d *daemon) gauges(c *config.Config) *instrument.HostGauges {
	prices := c.Cost.List(d.backends.region)
	return &instrument.HostGauges{
		Store: d.records(), Jobs: d.backends.store, Guards: d.backends.store, Services: d.fleet.Services, WhyWaits: d.fleet.WhyWaits, Requests: d.fleet.WaitingRequests, ClockOffset: d.backends.clockOffset,
		JobPools: slices.Sorted(maps.Keys(jobPools(c))), Pools: slices.Sorted(maps.Keys(c.Pools)), Budgets: d.hub.Budgets, CostBudgets: d.fleet.Budgets, Price: prices.Of, Metrics: d.metrics, Log: d.log.Named("metrics"),
	}
}

// serve answers calls and sweeps until ctx ends, and then lets calls in progress finish for
// drainWithin. announce is called once callers can connect.
func (d *daemon) serve(ctx context.Context, grpc, http net.Listener, announce func()) error {
	group, running := errgroup.WithContext(ctx)
	unlessStopping := func(err error) error {
		if running.Err() != nil {
			return nil // a server that is stopped before it began says so
		}
		return err
	}
	group.Go(func() error { return unlessStopping(d.grpc.Serve(grpc)) })
	group.Go(func() error { return unlessStopping(d.web.Serve(http)) })
	group.Go(func() error { d.fleet.Sweep(running); return nil })
	group.Go(func() error { d.fleet.ServeJobs(running); return nil })
	group.Go(func() error { d.presence.Run(running); return nil })
	group.Go(func() error { d.fleet.HearNotices(running); return nil })
	group.Go(func() error { d.fleet.KeepCalls(running); return nil })
	group.Go(func() error { d.fleet.ServeServices(running); return nil })
	group.Go(func() error { <-running.Done(); d.drain(); return nil })
	d.log.Info("serving", logkey.GRPC, grpc.Addr(), logkey.HTTP, http.Addr(), logkey.Version, telemetry.Version)
	announce()
	err := group.Wait()
	d.log.Info("stopped serving")
	return err
}

// drain stops both servers within drainWithin.
func (d *daemon) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	var group errgroup.Group
	group.Go(func() error { d.grpc.Stop(ctx); return nil })
	group.Go(func() error { d.web.Stop(ctx); return nil })
	_ = group.Wait() // neither returns an error
}

// flushWithin is how long controld waits for its collector when it stops.
const flushWithin = time.Second

// close sends the spans that wait, as far as flushWithin allows, and closes the backends. A collector that is away is no error.
func (d *daemon) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushWithin)
	defer cancel()
	if err := d.tracing.Close(ctx); err != nil {
		d.log.Warn("the last spans were not sent", logkey.Error, err)
	}
	return d.backends.close()
}

// newTracing begins to send spans, if the configuration says where to.
func newTracing(ctx context.Context, c *config.Config, in *inputs.Inputs, replica string, log hclog.Logger) (*tracing.Tracing, error) {
	if c.Tracing.Endpoint == "" {
		return nil, nil
	}
	return tracing.New(ctx, tracingOptions(c, in, replica, log))
}

// tracingOptions say where spans go.
func tracingOptions(c *config.Config, in *inputs.Inputs, replica string, log hclog.Logger) tracing.Options {
	return tracing.Options{
		Endpoint: c.Tracing.Endpoint, Authorities: in.TracingAuthorities, Headers: in.TracingHeaders, Sample: float64(c.Tracing.SamplePercent) / 100,
		Version: telemetry.Version, Replica: replica, Log: log.Named("tracing"),
	}
}

// newReplica is a name for this process in leases that no other process has or will have.
func newReplica() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:8])
}

// issuerTimeout bounds a call to the issuer of ID tokens. Once an hour a workflow waits for that call.
const issuerTimeout = 10 * time.Second

// callers decides who may call. Workflows may call where a rule allows it.
func callers(c *config.Config, in *inputs.Inputs, jobs fleet.JobStore, f *fleet.Fleet) (server.Callers, error) {
	who := server.Callers{Operators: c.Callers.Roles(), Rules: c.Rules(), Once: jobs.SeeOnce, Fork: f.Fork, Workers: workerTokens(c)}
	if len(who.Rules) == 0 || c.Callers.Audience == "" {
		return who, nil
	}
	var err error
	who.Tokens, err = idtoken.New(tokenOptions(c, in))
	return who, err
}

// tokenOptions say which ID tokens of workflows are accepted.
func tokenOptions(c *config.Config, in *inputs.Inputs) idtoken.Options {
	client := &http.Client{Transport: in.Transport, Timeout: issuerTimeout} // a GitHub Enterprise Server is its own issuer
	return idtoken.Options{Issuer: c.Callers.Issuer, Audience: c.Callers.Audience, Client: client}
}

// scaleDown is the scale-down of the configuration, or nil if no idle host of a run is to be ended.
func (d *daemon) scaleDown(c *config.Config) (*fleet.ScaleDown, error) {
	if c.ScaleDown == nil {
		return nil, nil
	}
	policy, err := c.ScaleDown.Policy()
	if err != nil {
		return nil, &configError{fmt.Errorf("scale_down: %w", err)}
	}
	return &fleet.ScaleDown{
		Policy: policy, GitHub: instrument.Registrations{Registrations: d.hub, Calls: d.calls("github")}, Scope: settings.Scope(c), Every: c.Sweeps.ScaleDown,
	}, nil
}
