// Package dockerstore keeps docker's images and the layers of its builds between the runs of a host.
//
// What the machine came with is recorded once (Record). After a run either all else is deleted (Reset), or it is bounded and becomes the cache of the
// runs after it (Keep). A job that can use docker is root, so whose run it was decides, and nothing that the store says of itself: see docs/caches.md.
//
// All calls go to the daemon by its API. It runs as root; no container may be left.
package dockerstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/remuda-ci/remuda/internal/retry"
)

// Reset deletes all images, names and layers of builds that the machine did not come with, and gives its images their names back. An image of the
// machine that a run has deleted stays away.
func (s Store) Reset(ctx context.Context, bootID string) error {
	if err := s.reset(ctx, bootID); err != nil {
		return fmt.Errorf("delete images: %w", err)
	}
	return nil
}

func (s Store) reset(ctx context.Context, bootID string) error {
	if err := s.forget(); err != nil {
		return err
	}
	m, err := s.machine()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	e, err := connect(ctx, s.Socket)
	if err != nil {
		return err
	}
	defer e.close()
	if err := dropBuilds(ctx, e); err != nil {
		return err
	}
	if len(m.Images) == 0 {
		if err := e.pruneUnused(ctx); err != nil {
			return err
		}
	}
	if err := s.removeAdded(ctx, e, m); err != nil {
		return err
	}
	m.BootID = bootID
	return s.saveMachine(m)
}

const (
	// dropTries is how often layers of builds are deleted. A build that has lost its client holds some for a moment.
	dropTries = 5
	// dropPause is between two tries.
	dropPause = 200 * time.Millisecond
)

// dropBuilds deletes all layers of builds.
func dropBuilds(ctx context.Context, e *engine) error {
	for try := 1; ; try++ {
		if err := e.pruneBuilds(ctx, 0); err != nil {
			return err
		}
		u, err := e.usage(ctx)
		switch {
		case err != nil:
			return err
		case len(u.BuildCache) == 0:
			return nil
		case try == dropTries:
			return fmt.Errorf("%d layers of builds are left", len(u.BuildCache))
		}
		if err := retry.Sleep(ctx, dropPause); err != nil {
			return err
		}
	}
}

// removeAdded deletes what the machine did not come with, until nothing of it is left.
func (s Store) removeAdded(ctx context.Context, e *engine, m machine) error {
	var last error
	for before := -1; ; {
		images, err := e.images(ctx)
		if err != nil {
			return err
		}
		added, tags, lost := m.added(images), m.addedTags(images), m.lostTags(images)
		left := len(added) + len(tags) + len(lost)
		switch {
		case left == 0:
			return nil
		case before >= 0 && left >= before:
			return fmt.Errorf("%d images and names are left: %w", left, errors.Join(last, ctx.Err()))
		}
		before, last = left, nil
		// Its own names come first: an image of the machine that has only a name of a run's would go with it.
		for id, names := range lost {
			for _, name := range names {
				if err := e.tag(ctx, id, name); err != nil {
					last = err
				}
			}
		}
		for _, tag := range tags {
			if err := e.remove(ctx, tag); err != nil {
				last = err
			}
		}
		for _, i := range leaves(added) {
			if err := e.remove(ctx, i.ID); err != nil {
				last = err
			}
		}
	}
}

// forget ends that what docker has is a cache.
func (s Store) forget() error {
	if err := os.Remove(s.path(stateFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.forgetUsed()
}

// Added lists what docker has that the machine did not come with, for people.
func (s Store) Added(ctx context.Context) (found []string, err error) {
	m, err := s.machine()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	e, err := connect(ctx, s.Socket)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	defer e.close()
	images, err := e.images(ctx)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	for _, i := range m.added(images) {
		found = append(found, fmt.Sprintf("image %q", i.name()))
	}
	for _, tag := range m.addedTags(images) {
		found = append(found, fmt.Sprintf("name %q of an image", tag))
	}
	u, err := e.usage(ctx)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	if n := len(u.BuildCache); n > 0 {
		found = append(found, fmt.Sprintf("build cache of %d layers", n))
	}
	return found, nil
}
