package host

import (
	"context"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/host/dockerstore"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// imagesToKeep is the cache that the images of docker become after the clean-up under way, which is to keep the caches of these names; nil: docker keeps none.
func (h *Host) imagesToKeep(keep []string) *dockerstore.Cache {
	spec, ok := cache.Docker(h.o.Caches)
	if !ok || h.o.Systemd == nil || !slices.Contains(keep, spec.Name) {
		return nil
	}
	start, err := h.task(taskClean).readStart()
	if err != nil || start == nil {
		return nil
	}
	repository := start.RunBefore[:max(strings.LastIndexByte(start.RunBefore, '/'), 0)]
	key := spec.Key(repository)
	if key == "" {
		return nil
	}
	return &dockerstore.Cache{Key: key, Name: spec.Name, Size: spec.Size, Keep: spec.KeepFor()}
}

// keepImages makes what the last run has left in docker the cache. What cannot be kept is deleted, and only if that fails is the host not clean.
func (h *Host) keepImages(ctx context.Context, c dockerstore.Cache) error {
	limited, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	o, err := h.layout.keepImages(limited, c)
	if err != nil {
		h.log.Error("images of docker not kept", logkey.Cache, c.Name, logkey.Error, err)
		return h.layout.removeImages(ctx)
	}
	for _, image := range o.Dropped {
		h.log.Info("image of docker deleted", logkey.Cache, c.Name, logkey.Reason, image)
	}
	h.log.Info("cache settled", logkey.Cache, c.Name, logkey.CacheKey, c.Key, logkey.Kept, o.Kept, logkey.Reason, o.Reason, logkey.Bytes, o.Bytes)
	return nil
}

// heldImages is what the host has of a cache of docker.
func (h *Host) heldImages() (held []cache.Held, err error) {
	c, ok, err := dockerstore.Store{Dir: h.path("state")}.Held()
	if err != nil || !ok {
		return nil, err
	}
	return []cache.Held{{Key: c.Key, Bytes: c.Bytes, CommittedAt: c.CommittedAt}}, nil
}

func (l *unitLayout) keepImages(ctx context.Context, c dockerstore.Cache) (dockerstore.Outcome, error) {
	return l.o.Reset.KeepImages(ctx, c)
}

func (l *unitLayout) removeImages(ctx context.Context) error { return l.o.Reset.RemoveImages(ctx) }

func (l *groupLayout) keepImages(context.Context, dockerstore.Cache) (dockerstore.Outcome, error) {
	return dockerstore.Outcome{}, nil
}

func (l *groupLayout) removeImages(context.Context) error { return nil }
