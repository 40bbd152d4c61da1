package process

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/remuda-ci/remuda/internal/retry"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// lockLook is how often a lock that another holds is tried again. Locks are held for some milliseconds.
const lockLook = 5 * time.Millisecond

// lockFile waits for the lock. It is released by closing the file, and by the kernel when its holder dies.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	for {
		f, ok, err := safefile.TryLock(path)
		if err != nil || ok {
			return f, err
		}
		if err := retry.Sleep(ctx, lockLook); err != nil {
			return nil, fmt.Errorf("wait for lock %s: %w", path, err)
		}
	}
}
