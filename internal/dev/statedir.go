package dev

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/remuda-ci/remuda/internal/config"
	standinrunner "github.com/remuda-ci/remuda/internal/githubsim/runner"
	"github.com/remuda-ci/remuda/internal/safefile"
)

const (
	// lockWithin is how long to wait for the lock of the state directory: a dev that was killed while it
	// started a process has left its lock to that process, until the new program is loaded.
	lockWithin = 2 * time.Second
	// lockPause is the pause between two tries.
	lockPause = 10 * time.Millisecond
)

// HoldStateDir makes the state directory and keeps other devs out of it until the file is
// closed or this process dies.
func HoldStateDir(ctx context.Context, dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--state-dir %s: make it: %w", dir, err)
	}
	lock, free, err := safefile.TryLock(filepath.Join(dir, "dev.lock"))
	for until := time.Now().Add(lockWithin); err == nil && !free && ctx.Err() == nil && time.Now().Before(until); {
		time.Sleep(lockPause)
		lock, free, err = safefile.TryLock(filepath.Join(dir, "dev.lock"))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("--state-dir %s: not writable: %w", dir, err)
	case !free:
		return nil, fmt.Errorf("--state-dir %s: another `controld dev` runs on it; end that one, or give another directory", dir)
	}
	return lock, nil
}

// WriteSecrets writes dev's own secret files, if the configuration names them.
func (o *Options) WriteSecrets(c *config.Config) error {
	err := os.WriteFile(o.tokenFile(), []byte("standin\n"), 0o600)
	if err == nil && c.Webhooks != nil && c.Webhooks.SecretFile == o.webhookSecret() {
		if _, missing := os.Stat(o.webhookSecret()); missing != nil {
			err = os.WriteFile(o.webhookSecret(), []byte(rand.Text()+"\n"), 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("--state-dir %s: %w", o.StateDir, err)
	}
	return nil
}

// Programs are the paths of the programs that dev runs.
type Programs struct{ Controld, Agentd, Runner string }

// FindPrograms finds them beside controld, where make build puts them.
func FindPrograms() (Programs, error) {
	self, err := os.Executable()
	if err != nil {
		return Programs{}, fmt.Errorf("find controld itself: %w", err)
	}
	bin := filepath.Dir(self)
	p := Programs{Controld: self, Agentd: filepath.Join(bin, "agentd"), Runner: filepath.Join(bin, "standin-runner")}
	for _, path := range []string{p.Agentd, p.Runner} {
		if _, err := os.Stat(path); err != nil {
			return Programs{}, fmt.Errorf("find the program beside controld: %w; run make build", err)
		}
	}
	return p, nil
}

// LayOutRunner makes the distribution that hosts copy their runner from. It does so once for
// each build, since hosts of an earlier dev may be copying theirs.
func LayOutRunner(dir, program string) error {
	laid, laidErr := os.Stat(filepath.Join(dir, "bin", "Runner.Worker")) // the last thing that is laid
	built, err := os.Stat(program)
	if err != nil {
		return fmt.Errorf("lay out runner: %w", err)
	}
	if laidErr == nil && os.SameFile(laid, built) {
		return nil
	}
	if laidErr != nil && !errors.Is(laidErr, os.ErrNotExist) {
		return fmt.Errorf("lay out runner: %w", laidErr)
	}
	return standinrunner.LayOut(dir, program)
}
