package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"time"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/dev"
	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// endWithin is how long the hosts may take to end after the last call. Killed processes take milliseconds;
// removing their files takes longer. Together with drainWithin it leaves a second of stopWithin for the rest.
const endWithin = 5 * time.Second

// runDev runs everything on this machine. What it starts ends with it, unless it is killed:
// then the next dev on the same directory goes on with it.
func runDev(ctx context.Context, call *call) (err error) {
	var o dev.Options
	if _, err := call.parse(0, o.Define); err != nil {
		return err
	}
	if err := call.flags(o.Complete()); err != nil {
		return err
	}
	lock, err := dev.HoldStateDir(ctx, o.StateDir)
	if err != nil {
		return err
	}
	defer lock.Close()
	grpc, err := listen("--grpc-addr", o.GRPCAddr)
	if err != nil {
		return err
	}
	defer grpc.Close()
	http, err := listen("--http-addr", o.HTTPAddr)
	if err != nil {
		return err
	}
	defer http.Close()
	programs, err := dev.FindPrograms()
	if err != nil {
		return err
	}
	c, err := devConfiguration(&o, programs, new(inputs.Inputs).Rule)
	if err != nil {
		return call.flags(err)
	}
	if err := o.WriteSecrets(c); err != nil {
		return err
	}
	if err := dev.LayOutRunner(c.Compute.Process.Runner, programs.Runner); err != nil {
		return fmt.Errorf("--state-dir %s: %w", o.StateDir, err)
	}
	standin, err := dev.StartStandin(ctx, programs.Controld, o.GitHubAddr, o.GitHubDir(), o.GitHub)
	if err != nil {
		return fmt.Errorf("--github-addr %s: %w", o.GitHubAddr, err)
	}
	c.GitHub.URL = standin.URL()
	c.Callers.Issuer = "http://" + standin.Addr
	in, err := inputs.Of("controld dev", c)
	if err != nil {
		return errors.Join(wrongConfig(err), standin.EndIfStarted())
	}
	if err := sendWebhooks(ctx, standin, http.Addr(), in); err != nil {
		return errors.Join(err, standin.EndIfStarted())
	}
	// The lock lets one dev at a time work on a directory, so each may use the same replica
	// name and need not wait for the lease of one that was killed.
	d, err := newDaemon(ctx, c, in, "dev", call.stderr)
	if err != nil {
		return errors.Join(err, standin.EndIfStarted())
	}
	err = d.serve(ctx, grpc, http, func() {
		fmt.Fprintf(call.stdout, "ready grpc=%s http=%s github=%s state=%s\n", grpc.Addr(), http.Addr(), standin.Addr, o.StateDir) // for scripts
	})
	return errors.Join(err, d.endHostsAnd(standin), d.close())
}

// flags turns the error of a flag into a usage error of the command.
func (c *call) flags(err error) error {
	var flag *dev.FlagError
	if errors.As(err, &flag) {
		return c.misused("%s", flag)
	}
	return err
}

// devConfiguration is the configuration that dev makes of its flags and its file.
func devConfiguration(o *dev.Options, programs dev.Programs, rules ...config.Rule) (*config.Config, error) {
	c, err := o.Configuration(programs, rules...)
	var flag *dev.FlagError
	switch {
	case errors.As(err, &flag):
		return nil, err
	case err != nil:
		return nil, wrongConfig(err)
	}
	return c, nil
}

// sendWebhooks makes the stand-in sign its deliveries with the first secret of the configuration and send
// them to an address. Without webhooks in the configuration it sends none.
func sendWebhooks(ctx context.Context, standin *dev.Standin, to net.Addr, in *inputs.Inputs) error {
	if in.Webhooks == nil {
		return nil
	}
	secrets, err := in.Webhooks()
	if err != nil {
		return &configError{err}
	}
	return standin.SendWebhooks(ctx, to, secrets[0].Reveal())
}

// endHostsAnd ends the hosts and the stand-in at the same time: killed hosts do not need the
// stand-in. The hosts have a context of their own, since that of the daemon has ended.
func (d *daemon) endHostsAnd(standin *dev.Standin) error {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	standinErr := make(chan error, 1)
	go func() { standinErr <- standin.End() }()
	return errors.Join(d.backends.endHosts(ctx), <-standinErr)
}

// githubStandin runs the GitHub stand-in alone.
func githubStandin(ctx context.Context, call *call) error {
	var addr, dir string
	var times dev.StandinTimes
	if _, err := call.parse(0, func(f *flag.FlagSet) {
		f.StringVar(&addr, "addr", "", "where to listen, `HOST:PORT`; port 0 takes a free one")
		f.StringVar(&dir, "state-dir", "", "the `DIR` that everything is kept in")
		times.Define(f)
	}); err != nil {
		return err
	}
	if addr == "" || dir == "" {
		return call.misused("--addr and --state-dir are required")
	}
	if err := dev.Loopback(addr); err != nil {
		return call.misused("--addr %s: %v", addr, err)
	}
	lock, err := dev.HoldStandinDir(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	l, err := listen("--addr", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	log := telemetry.NewLogger("github-standin", "info", telemetry.LogText, call.stderr)
	return dev.ServeStandin(ctx, l, dir, times, log, call.stdout)
}
