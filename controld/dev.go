package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

// endWithin is how long the hosts may take to end after the last call. Killed
// processes take milliseconds; removing what they had on disk takes longer. With
// drainWithin before it it leaves a second of stopWithin to the rest.
const endWithin = 5 * time.Second

const (
	// lockWithin: a dev that was killed while it started a process has left its
	// lock to that one, until the new program is loaded.
	lockWithin = 2 * time.Second
	// lockLook is the pause between two tries.
	lockLook = 10 * time.Millisecond
)

// devOptions are the flags of dev.
type devOptions struct {
	grpcAddr, httpAddr, githubAddr string
	stateDir                       string
	config                         string
}

func (o *devOptions) define(f *flag.FlagSet) {
	f.StringVar(&o.grpcAddr, "grpc-addr", "127.0.0.1:7443", "where callers reach the fleet; port 0 of an `ADDR` takes a free one")
	f.StringVar(&o.httpAddr, "http-addr", "127.0.0.1:7080", "where health and metrics are served, an `ADDR`")
	f.StringVar(&o.githubAddr, "github-addr", "127.0.0.1:7081", "where the GitHub stand-in listens, an `ADDR`")
	f.StringVar(&o.stateDir, "state-dir", filepath.Join(".state", "dev"), "the `DIR` of store, hosts and stand-in, with which the next start goes on")
	f.StringVar(&o.config, "config", "", "a configuration `FILE`: pools, classes, timeouts, sweeps, boot delay, zones, capacity, log;\n"+
		"addresses, TLS, paths, and the URL and token of GitHub are those of dev, whatever it says")
}

// complete checks the flags and makes the state directory's path absolute,
// since hosts and stand-in have working directories of their own.
func (o *devOptions) complete(c *call) error {
	for _, f := range []struct{ name, addr string }{
		{"--grpc-addr", o.grpcAddr}, {"--http-addr", o.httpAddr}, {"--github-addr", o.githubAddr},
	} {
		if err := loopback(f.addr); err != nil {
			return c.misused("%s %s: %v", f.name, f.addr, err)
		}
	}
	if o.stateDir == "" {
		return c.misused("--state-dir is empty")
	}
	dir, err := filepath.Abs(o.stateDir)
	if err != nil {
		return fmt.Errorf("--state-dir %s: %w", o.stateDir, err)
	}
	o.stateDir = dir
	return nil
}

// loopback refuses addresses that other machines reach: there is no TLS here,
// and the stand-in trusts everybody.
func loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("not an address; write one such as 127.0.0.1:7443")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("not a loopback address; this is for one machine only, `controld serve` is for more")
	}
	return nil
}

// dev runs everything on this machine. What it starts ends with it, unless it
// is killed: then the next dev on the same directory goes on with it.
func dev(ctx context.Context, call *call) (err error) {
	var o devOptions
	if _, err := call.parse(0, o.define); err != nil {
		return err
	}
	if err := o.complete(call); err != nil {
		return err
	}
	lock, err := holdState(ctx, o.stateDir)
	if err != nil {
		return err
	}
	defer lock.Close()
	grpc, err := listen("--grpc-addr", o.grpcAddr)
	if err != nil {
		return err
	}
	defer grpc.Close()
	http, err := listen("--http-addr", o.httpAddr)
	if err != nil {
		return err
	}
	defer http.Close()
	programs, err := findPrograms()
	if err != nil {
		return err
	}
	c, err := o.configuration(programs)
	if err != nil {
		return err
	}
	if err := o.writeSecrets(c); err != nil {
		return err
	}
	if err := layOutRunner(c.Compute.Process.Runner, programs.runner); err != nil {
		return fmt.Errorf("--state-dir %s: %w", o.stateDir, err)
	}
	hub, err := startStandin(ctx, programs.controld, o.githubAddr, o.githubDir())
	if err != nil {
		return fmt.Errorf("--github-addr %s: %w", o.githubAddr, err)
	}
	c.GitHub.URL = hub.url()
	c.Callers.Issuer = "http://" + hub.Addr
	if err := hub.sendWebhooks(ctx, http.Addr(), c.Webhooks); err != nil {
		return errors.Join(err, hub.undo())
	}
	// The lock lets one dev at a time work on a directory, so each may go by
	// the same name and need not wait for the lease of one that was killed.
	d, err := newDaemon(ctx, c, "dev", call.stderr)
	if err != nil {
		return errors.Join(err, hub.undo())
	}
	err = d.serve(ctx, grpc, http, func() { o.announce(call.stdout, grpc, http, hub) })
	return errors.Join(err, d.endHostsAnd(hub), d.close())
}

// announce is the one line on stdout, for scripts.
func (o *devOptions) announce(stdout io.Writer, grpc, http net.Listener, hub *standin) {
	fmt.Fprintf(stdout, "ready grpc=%s http=%s github=%s state=%s\n", grpc.Addr(), http.Addr(), hub.Addr, o.stateDir)
}

// endHostsAnd ends the hosts and the stand-in side by side: killed hosts have no
// use for it any more. The hosts have a time of their own, since the context of
// the daemon has ended.
func (d *daemon) endHostsAnd(hub *standin) error {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	hubErr := make(chan error, 1)
	go func() { hubErr <- hub.end() }()
	return errors.Join(d.parts.endHosts(ctx), <-hubErr)
}

// holdState makes the state directory and keeps other devs out of it until the
// file is closed, or this process dies.
func holdState(ctx context.Context, dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--state-dir %s: make it: %w", dir, err)
	}
	lock, free, err := lockFile(filepath.Join(dir, "dev.lock"))
	for until := time.Now().Add(lockWithin); err == nil && !free && ctx.Err() == nil && time.Now().Before(until); {
		time.Sleep(lockLook)
		lock, free, err = lockFile(filepath.Join(dir, "dev.lock"))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("--state-dir %s: not writable: %w", dir, err)
	case !free:
		return nil, fmt.Errorf("--state-dir %s: another `controld dev` runs on it; end that one, or give another directory", dir)
	}
	return lock, nil
}
