package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	// followAtMost is the most releases that are followed at a time.
	followAtMost = 256
	// followMargin is how long a release is followed beyond the time that a host has to become clean.
	followMargin = 10 * time.Second
)

// followers continue releases whose callers do not wait, so that a host is in the pool as soon as it is clean, and hot as soon as it
// listens: the due sweep looks at it only every few seconds. What is not followed, or not to its end, the sweep does.
type followers struct {
	fleet    *fleet.Fleet
	log      hclog.Logger
	patience time.Duration
	// stopping ends them.
	stopping context.Context
	places   chan struct{}
	running  sync.WaitGroup
}

// follow continues a release in the background, if there is a place for it.
func (f *followers) follow(release *fleet.Release, runID string) {
	select {
	case f.places <- struct{}{}:
	default:
		return
	}
	f.running.Go(func() {
		defer func() { <-f.places }()
		ctx, cancel := context.WithTimeout(f.stopping, lifecycle.DefaultPolicy().ReleaseTimeout+followMargin)
		defer cancel()
		release.Follow()
		err := f.fleet.Drive(ctx, release, f.patience)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && f.stopping.Err() == nil {
			f.log.Warn("release not followed to its end; the due sweep continues it", logkey.Run, runID, logkey.Error, err)
		}
	})
}
