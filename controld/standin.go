package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// The files by which a stand-in is found, in its state directory.
const (
	// standinLock is held as long as the stand-in lives.
	standinLock = "standin.lock"
	// standinFile tells who it is, from when it listens.
	standinFile = "standin.json"
	// standinLog is what it prints when dev started it.
	standinLog = "standin.log"
)

// standinID is the content of standinFile.
type standinID struct {
	PID  int    `json:"pid"`
	Addr string `json:"addr"`
}

// githubStandin runs the GitHub stand-in alone.
func githubStandin(ctx context.Context, call *call) error {
	var addr, dir string
	if _, err := call.parse(0, func(f *flag.FlagSet) {
		f.StringVar(&addr, "addr", "", "where to listen, `HOST:PORT`; port 0 takes a free one")
		f.StringVar(&dir, "state-dir", "", "the `DIR` that everything is kept in")
	}); err != nil {
		return err
	}
	if addr == "" || dir == "" {
		return call.misused("--addr and --state-dir are required")
	}
	if err := loopback(addr); err != nil {
		return call.misused("--addr %s: %v", addr, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--state-dir %s: make it: %w", dir, err)
	}
	lock, free, err := lockFile(filepath.Join(dir, standinLock))
	switch {
	case err != nil:
		return fmt.Errorf("--state-dir %s: not writable: %w", dir, err)
	case !free:
		return fmt.Errorf("--state-dir %s: another GitHub stand-in runs on it; end that one, or give another directory", dir)
	}
	defer lock.Close()
	return serveStandin(ctx, call, addr, dir)
}

func serveStandin(ctx context.Context, call *call, addr, dir string) error {
	l, err := listen("--addr", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	log := telemetry.NewLogger("github-standin", "info", telemetry.LogText, call.stderr)
	sim, err := githubsim.New(githubsim.Options{StateDir: dir, Log: log})
	if err != nil {
		return err
	}
	if err := writeStandinID(dir, standinID{PID: os.Getpid(), Addr: l.Addr().String()}); err != nil {
		return fmt.Errorf("--state-dir %s: %w", dir, err)
	}
	fmt.Fprintf(call.stdout, "ready github=%s state=%s\n", l.Addr(), dir)
	return sim.Serve(ctx, l)
}

// writeStandinID writes the file whole or not at all.
func writeStandinID(dir string, id standinID) error {
	data, err := json.Marshal(id)
	if err != nil {
		return err
	}
	draft := filepath.Join(dir, standinFile+".new")
	if err := os.WriteFile(draft, data, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, filepath.Join(dir, standinFile))
}
