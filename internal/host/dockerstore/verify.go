package dockerstore

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// verifyLimit is how long images may be verified after a run. Beside it, bounds take their time, and a host that is not clean in time is ended.
const verifyLimit = 40 * time.Second

// overlay2 is the storage driver whose files are known here.
const overlay2 = "overlay2"

// verify compares the images of runs with their digests: those that are new, and after a boot all. Each layer is read once in a boot. An image that differs is
// deleted, and so is one that the time did not suffice for.
func (k *keeping) verify(ctx context.Context, now time.Time) error {
	added, err := k.list(ctx, now)
	if err != nil {
		return err
	}
	var info struct{ Driver, DockerRootDir string }
	if err := k.e.call(ctx, http.MethodGet, "/info", nil, &info); err != nil {
		return err
	}
	if info.Driver != overlay2 {
		return refused("docker has the storage driver %q, and only images in %s can be verified", info.Driver, overlay2)
	}
	limited, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	bad := map[string]string{} // why, by id
	for _, i := range added {
		err := k.verifyImage(ctx, limited, disk{info.DockerRootDir}, i)
		var differ *differsError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &differ):
			bad[i.ID] = err.Error()
		case err != nil && limited.Err() != nil:
			bad[i.ID] = "the time did not suffice to verify it"
		case err != nil:
			return err
		}
	}
	return k.dropBad(ctx, bad)
}

// verifyImage compares an image. limited bounds how long layers are read: one whose layers were all read in this boot needs none of it.
func (k *keeping) verifyImage(ctx, limited context.Context, d disk, i image) error {
	if err := d.checkConfig(i.ID); err != nil {
		return err
	}
	var details struct{ RootFS struct{ Layers []string } }
	if err := k.e.call(ctx, http.MethodGet, "/images/"+i.ID+"/json", nil, &details); err != nil {
		return err
	}
	for n, chain := range chains(details.RootFS.Layers) {
		id, err := d.directory(chain)
		if err != nil {
			return err
		}
		if !k.state.Verified[id] {
			if err := d.checkLayer(limited, chain, id, details.RootFS.Layers[n]); err != nil {
				return err
			}
			k.state.Verified[id] = true
		}
		k.layers[id] = true
	}
	return nil
}

// dropBad deletes images, and of those that others are built on the names.
func (k *keeping) dropBad(ctx context.Context, bad map[string]string) error {
	for len(bad) > 0 {
		images, err := k.e.images(ctx)
		if err != nil {
			return err
		}
		before := len(bad)
		for _, i := range leaves(k.machine.added(images)) {
			if why, ok := bad[i.ID]; ok {
				if err := k.drop(ctx, i, why); err != nil {
					return err
				}
				delete(bad, i.ID)
			}
		}
		if len(bad) < before {
			continue
		}
		for _, i := range images {
			if _, ok := bad[i.ID]; ok && len(i.refs()) > 0 {
				return refused("the image %q cannot be verified, and others are built on it: %s", i.name(), bad[i.ID])
			}
		}
		return nil // they have gone with those that were built on them
	}
	return nil
}
