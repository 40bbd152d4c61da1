package reset

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/host/reset/keyring"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/retry"
)

const (
	// keyLimit is how long the kernel may take to free keys that nothing holds. It takes some milliseconds.
	keyLimit = 5 * time.Second
	// keyPause is the time between two looks at whether they are gone.
	keyPause = 5 * time.Millisecond
)

// removeKeys drops the user's keyrings and waits until the kernel has freed all keys.
func (p Plan) removeKeys(ctx context.Context, log hclog.Logger) error {
	if err := keyring.Available(); err != nil {
		log.Info("kernel keyrings are not available and not checked", logkey.Error, err)
		return nil
	}
	for end, tried := time.Now().Add(keyLimit), false; ; tried = true {
		n, err := keyring.Count(p.at("/proc"), p.UID)
		if err != nil || n == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("remove keys of user %s: %d are left after %s: withdraw the host", p.User, n, keyLimit)
		}
		if !tried {
			if err := keyring.Drop(p.UID); err != nil {
				return fmt.Errorf("remove keys of user %s: %w", p.User, err)
			}
		}
		if err := retry.Sleep(ctx, keyPause); err != nil {
			return err
		}
	}
}

func (p Plan) checkKeys(d *Findings) {
	if keyring.Available() != nil {
		return // Run has logged that
	}
	n, err := keyring.Count(p.at("/proc"), p.UID)
	if d.addErr(err); n > 0 {
		d.add("user %s has %d keys in the kernel: remove them with keyctl as that user", p.User, n)
	}
}
