package world

import (
	"slices"

	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// A job that can use docker is root. So on a host with a cache of docker it leaves two things: what is in docker's store, which the clean-up deletes
// unless it is to keep it, and whatever else it likes, which no clean-up finds.

// images is the cache of the host's pool that holds docker; false: it has none.
func (h *Host) images() (cache.Spec, bool) {
	return cache.Docker(h.World.Pools[h.Machine.Pool].Caches)
}

// becomeRoot marks the host as one on which a job was root.
func (h *Host) becomeRoot(j *Job) {
	if _, ok := h.images(); !ok {
		return
	}
	run := Run{j.Repository, j.RunID}
	if !h.World.Trusted(run) {
		h.World.Mark(engine.MarkUntrustedRoot)
	}
	if !slices.Contains(h.Roots, run) {
		h.Roots = append(h.Roots, run)
	}
}

// deleteImages deletes what runs have added to docker, unless the clean-up keeps it. It reports whether there was anything.
func (h *Host) deleteImages(kept []string) (deleted bool) {
	spec, ok := h.images()
	if !ok || slices.Contains(kept, spec.Name) {
		return false
	}
	for key, c := range h.caches {
		deleted = deleted || len(c.Writers) > 0
		delete(h.caches, key)
	}
	return deleted
}
