package dockerstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/safefile"
)

// usedFile has the ids of the images that the run which is being cleaned up after has used.
const usedFile = "docker-used.json"

// NoteUsed notes which images the last run has used: those of the containers that are left, and of those that docker remembers. It remembers the last 256
// things that happened. What a build was based on it does not say. It is called before containers are deleted, and again by a repeated clean-up.
func (s Store) NoteUsed(ctx context.Context) error {
	e, err := connect(ctx, s.Socket)
	if err != nil {
		return fmt.Errorf("note used images: %w", err)
	}
	defer e.close()
	images, err := e.images(ctx)
	if err != nil {
		return fmt.Errorf("note used images: %w", err)
	}
	ids, err := e.containerImages(ctx)
	if err != nil {
		return fmt.Errorf("note used images: %w", err)
	}
	names, err := e.createdFrom(ctx, s.since())
	if err != nil {
		return fmt.Errorf("note used images: %w", err)
	}
	used := map[string]bool{}
	before, err := s.used()
	for _, id := range slices.Concat(before, ids, named(images, names)) {
		used[id] = true
	}
	if err != nil {
		return fmt.Errorf("note used images: %w", err)
	}
	data, err := json.Marshal(slices.Sorted(maps.Keys(used)))
	if err != nil {
		return err
	}
	return safefile.Replace(s.path(usedFile), data, 0o600, false)
}

// since is when the cache was last settled: what happened before is known.
func (s Store) since() time.Time {
	st, err := s.load()
	if err != nil {
		return time.Unix(0, 0)
	}
	return st.CommittedAt
}

// used reads the ids that are noted; none: nothing is.
func (s Store) used() (ids []string, err error) {
	data, err := safefile.Read(s.path(usedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &ids)
	}
	return ids, err
}

// readUsed notes in the state what the last run has used.
func (s Store) readUsed(now time.Time, st *state) error {
	ids, err := s.used()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, known := st.UsedAt[id]; known {
			st.UsedAt[id] = now
		}
	}
	return nil
}

func (s Store) forgetUsed() error {
	if err := os.Remove(s.path(usedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// named are the ids of the images that are meant by what jobs have written.
func named(images []image, names []string) (ids []string) {
	for _, name := range names {
		for _, i := range images {
			if i.isCalled(name) {
				ids = append(ids, i.ID)
			}
		}
	}
	return ids
}

// shortID is the least of an id that is taken for one.
const shortID = 12

// isCalled reports whether a name in a command of docker means the image.
func (i image) isCalled(name string) bool {
	short := strings.TrimPrefix(name, "sha256:")
	return slices.Contains(i.refs(), name) || slices.Contains(i.tags(), name+":latest") ||
		len(short) >= shortID && strings.HasPrefix(strings.TrimPrefix(i.ID, "sha256:"), short)
}

// containerImages are the ids of the images of all containers.
func (e *engine) containerImages(ctx context.Context) (ids []string, err error) {
	var containers []struct {
		ImageID string `json:"ImageID"`
	}
	if err := e.call(ctx, http.MethodGet, "/containers/json", url.Values{"all": {"1"}}, &containers); err != nil {
		return nil, err
	}
	for _, c := range containers {
		ids = append(ids, c.ImageID)
	}
	return ids, nil
}

// createdFrom are the names of the images that containers were created from since a time, as far as the daemon remembers.
func (e *engine) createdFrom(ctx context.Context, since time.Time) (names []string, err error) {
	moment := func(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) } // a whole second would leave out what is younger
	query := url.Values{"since": {moment(since)}, "until": {moment(time.Now())}, "filters": {`{"type":["container"],"event":["create"]}`}}
	resp, err := e.send(ctx, http.MethodGet, "/events", query)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	for dec := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)); ; {
		var event struct {
			Actor struct{ Attributes map[string]string }
		}
		switch err := dec.Decode(&event); {
		case errors.Is(err, io.EOF):
			return names, nil
		case err != nil:
			return nil, fmt.Errorf("read docker's events: %w", err)
		}
		names = append(names, event.Actor.Attributes["image"])
	}
}
