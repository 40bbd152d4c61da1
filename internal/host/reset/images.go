package reset

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/host/dockerstore"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// removeOfDocker deletes all that docker has of runs; images only if they are not kept.
func (p Plan) removeOfDocker(ctx context.Context, m manager, log hclog.Logger) error {
	if p.KeepImages {
		if err := p.noteUsedImages(ctx, m); err != nil { // then other images may count as older than they are
			log.Warn("cannot note which images the last run has used", logkey.Error, err)
		}
		return p.removeDockerObjects(ctx, m)
	}
	if err := p.removeDockerObjects(ctx, m); err != nil {
		return err
	}
	return p.removeImages(ctx, m)
}

// noteUsedImages notes which images the last run has used, while its containers are there.
func (p Plan) noteUsedImages(ctx context.Context, m manager) error {
	if p.Images == nil {
		return nil
	}
	has, err := p.hasDocker(ctx, m)
	if err != nil || !has {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dockerLimit)
	defer cancel()
	return p.Images.NoteUsed(ctx)
}

// KeepImages makes what the last run has left in docker the cache: see dockerstore.Store.Keep. The host is verified before. After an error RemoveImages
// is to be called.
func KeepImages(ctx context.Context, p Plan, c dockerstore.Cache) (dockerstore.Outcome, error) {
	conn, err := connect(ctx)
	if err != nil {
		return dockerstore.Outcome{}, fmt.Errorf("keep images: %w", err)
	}
	defer conn.Close()
	has, err := p.hasDocker(ctx, systemd{conn})
	if err != nil {
		return dockerstore.Outcome{}, err
	}
	if !has || p.Images == nil {
		return dockerstore.Outcome{Kept: true, Reason: "the run has not used docker"}, nil
	}
	id, err := p.proc().BootID()
	if err != nil {
		return dockerstore.Outcome{}, err
	}
	return p.Images.Keep(ctx, c, id, time.Now())
}

// RemoveImages deletes the images and the layers of builds that the machine did not come with.
func RemoveImages(ctx context.Context, p Plan) error {
	conn, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("delete images: %w", err)
	}
	defer conn.Close()
	return p.removeImages(ctx, systemd{conn})
}

func (p Plan) removeImages(ctx context.Context, m manager) error {
	if p.Images == nil {
		return nil
	}
	has, err := p.hasDocker(ctx, m)
	if err != nil || !has {
		return err
	}
	id, err := p.proc().BootID()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dockerLimit)
	defer cancel()
	return p.Images.Reset(ctx, id)
}

// recordImages remembers which images the machine came with, once: later there may be those of runs.
func (p Plan) recordImages(ctx context.Context) error {
	if p.Images == nil {
		return nil
	}
	id, err := p.proc().BootID()
	if err != nil {
		return err
	}
	if recorded, _, err := p.Images.Known(id); err != nil || recorded {
		return err
	}
	used, err := p.dockerUsed()
	if err != nil {
		return err
	}
	if _, err := os.Stat(p.at("/run/docker.sock")); err != nil {
		used = false
	}
	ctx, cancel := context.WithTimeout(ctx, dockerLimit)
	defer cancel()
	return p.Images.Record(ctx, id, used)
}

// checkImages finds images that a run has left.
func (p Plan) checkImages(ctx context.Context, d *Findings, m manager) {
	if p.Images == nil || p.KeepImages {
		return
	}
	has, err := p.hasDocker(ctx, m)
	if d.addErr(err) || !has {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dockerLimit)
	defer cancel()
	found, err := p.Images.Added(ctx)
	d.addErr(err)
	for _, what := range found {
		d.add("docker has the %s of a run: delete it, or declare a cache that holds docker", what)
	}
}

// imagesUnsettled reports whether images of a run of an earlier boot may be left: it ended with that boot.
func (p Plan) imagesUnsettled() (bool, error) {
	if p.Images == nil {
		return false, nil
	}
	id, err := p.proc().BootID()
	if err != nil {
		return false, err
	}
	_, settled, err := p.Images.Known(id)
	if err != nil || settled {
		return false, err
	}
	return p.dockerUsed()
}
