package dev

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/remuda-ci/remuda/internal/config"
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
