package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/githubsim"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// HoldStandinDir makes the state directory of a stand-in and keeps other stand-ins out of it
// until the file is closed or this process dies.
func HoldStandinDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--state-dir %s: make it: %w", dir, err)
	}
	lock, free, err := safefile.TryLock(filepath.Join(dir, standinLock))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--state-dir %s: not writable: %w", dir, err)
	case !free:
		return nil, fmt.Errorf("--state-dir %s: another GitHub stand-in runs on it; end that one, or give another directory", dir)
	}
	return lock, nil
}

// ServeStandin runs the GitHub stand-in of a directory until ctx ends. It writes one line to
// stdout once it can be reached.
func ServeStandin(ctx context.Context, l net.Listener, dir string, log hclog.Logger, stdout io.Writer) error {
	sim, err := githubsim.New(githubsim.Options{StateDir: dir, Log: log})
	if err != nil {
		return err
	}
	if err := writeStandinID(dir, StandinID{PID: os.Getpid(), Addr: l.Addr().String()}); err != nil {
		return fmt.Errorf("--state-dir %s: %w", dir, err)
	}
	fmt.Fprintf(stdout, "ready github=%s state=%s\n", l.Addr(), dir)
	return sim.Serve(ctx, l)
}

// writeStandinID writes the file whole or not at all.
func writeStandinID(dir string, id StandinID) error {
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
