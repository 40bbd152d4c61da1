package dockerstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/safefile"
)

// Cache is what a host may keep of docker for the runs of its trust key.
type Cache struct {
	// Key identifies the cache: see cache.Spec.
	Key, Name string
	// Size is the most that images and layers of builds may have, in bytes, beside those of the machine.
	Size uint64
	// Keep is how long after its last use an image is kept.
	Keep time.Duration
}

// Held is what the host has of the cache.
type Held struct {
	Key, Name   string
	Bytes       int64
	CommittedAt time.Time
}

// Outcome is what became of what a run has left.
type Outcome struct {
	// Kept: the next run finds it.
	Kept bool
	// Reason is a sentence for the log.
	Reason string
	Bytes  int64
	// Dropped are sentences about images that were deleted.
	Dropped []string
}

// state is the content of stateFile.
type state struct {
	Key  string `json:"key"`
	Name string `json:"name"`
	// Bytes is what it takes beside the images of the machine.
	Bytes       int64     `json:"bytes"`
	CommittedAt time.Time `json:"committedAt"`
	// UsedAt is when each image was last used, as far as that is known, by its id.
	UsedAt map[string]time.Time `json:"usedAt"`
	// BootID is the boot in which the layers in Verified were compared with their digests, by their directories.
	BootID   string          `json:"bootId"`
	Verified map[string]bool `json:"verified"`
}

// stateFile has what the cache is, while what docker has is one.
const stateFile = "docker-cache.json"

// load reads the state; fs.ErrNotExist: there is no cache.
func (s Store) load() (st state, err error) {
	data, err := safefile.Read(s.path(stateFile))
	if err == nil {
		err = json.Unmarshal(data, &st)
	}
	return st, err
}

// Held is the cache that the host has; false: none.
func (s Store) Held() (Held, bool, error) {
	st, err := s.load()
	if errors.Is(err, fs.ErrNotExist) {
		return Held{}, false, nil
	}
	return Held{st.Key, st.Name, st.Bytes, st.CommittedAt}, err == nil, err
}

// Bounds of a cache. A run that leaves more leaves nothing.
const (
	maxImages = 2000
	maxNames  = 4000
)

// dropped is how many sentences about deleted images an outcome has.
const dropped = 20

// keeping is one settlement of what docker has.
type keeping struct {
	e       *engine
	machine machine
	cache   Cache
	state   state
	layers  map[string]bool // of images that are kept, by their directories
	outcome Outcome
}

// Keep makes what a run has left in docker the cache: what no image needs goes, then what no run has used for long, what differs from its digest, and then
// the oldest until the rest has the size. It is for runs that may write the cache, and no container may be left. After an error the caller calls Reset; a refusal has done so.
func (s Store) Keep(ctx context.Context, c Cache, bootID string, now time.Time) (Outcome, error) {
	o, err := s.keep(ctx, c, bootID, now)
	var refusal *refusedError
	if errors.As(err, &refusal) {
		return Outcome{Reason: refusal.Error()}, s.Reset(ctx, bootID)
	}
	if err != nil {
		return o, fmt.Errorf("keep images: %w", err)
	}
	return o, nil
}

// refusedError says why nothing that a run has left is kept.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return e.reason }

func refused(format string, args ...any) error { return &refusedError{fmt.Sprintf(format, args...)} }

func (s Store) keep(ctx context.Context, c Cache, bootID string, now time.Time) (Outcome, error) {
	k := keeping{cache: c, layers: map[string]bool{}}
	var err error
	if k.machine, err = s.machine(); err != nil {
		return k.outcome, err
	}
	if k.state, err = s.load(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return k.outcome, err
	}
	if k.state.Key != "" && k.state.Key != c.Key {
		return k.outcome, refused("what docker had before the run was of the cache %s", k.state.Key)
	}
	if k.state.BootID != bootID || k.state.Verified == nil {
		k.state.BootID, k.state.Verified = bootID, map[string]bool{}
	}
	if k.e, err = connect(ctx, s.Socket); err != nil {
		return k.outcome, err
	}
	defer k.e.close()
	if err := s.readUsed(now, &k.state); err != nil {
		return k.outcome, err
	}
	if err := k.dropOld(ctx, now); err != nil {
		return k.outcome, err
	}
	if err := k.verify(ctx, now); err != nil {
		return k.outcome, err
	}
	if err := k.bound(ctx); err != nil {
		return k.outcome, err
	}
	if err := k.restoreNames(ctx); err != nil {
		return k.outcome, err
	}
	if err := k.finish(ctx, now); err != nil {
		return k.outcome, err
	}
	k.machine.BootID = bootID
	if err := errors.Join(s.saveState(k.state), s.saveMachine(k.machine)); err != nil {
		return k.outcome, err
	}
	return k.outcome, s.forgetUsed()
}

func (s Store) saveState(st state) error {
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return safefile.Replace(s.path(stateFile), data, 0o600, true)
}

// drop deletes an image, and notes why.
func (k *keeping) drop(ctx context.Context, i image, why string) error {
	if err := k.e.remove(ctx, i.ID); err != nil {
		return err
	}
	if len(k.outcome.Dropped) < dropped {
		k.outcome.Dropped = append(k.outcome.Dropped, fmt.Sprintf("%q: %s", i.name(), why))
	}
	return nil
}

// list lists the images of runs, and refuses too many. Images that are new are used now.
func (k *keeping) list(ctx context.Context, now time.Time) ([]image, error) {
	images, err := k.e.images(ctx)
	if err != nil {
		return nil, err
	}
	added := k.machine.added(images)
	names := len(k.machine.addedTags(images))
	for _, i := range added {
		names += len(i.refs())
	}
	if len(added) > maxImages || names > maxNames {
		return nil, refused("the run has left %d images with %d names, and a host keeps %d and %d", len(added), names, maxImages, maxNames)
	}
	if k.state.UsedAt == nil {
		k.state.UsedAt = map[string]time.Time{}
	}
	for _, i := range added {
		if _, known := k.state.UsedAt[i.ID]; !known {
			k.state.UsedAt[i.ID] = now
		}
	}
	return added, nil
}

// dropOld deletes images without a name that no other is built on, and those that no run has used for as long as they are kept.
func (k *keeping) dropOld(ctx context.Context, now time.Time) error {
	for {
		added, err := k.list(ctx, now)
		if err != nil {
			return err
		}
		before := len(added)
		for _, i := range leaves(added) {
			switch unused := now.Sub(k.state.UsedAt[i.ID]); {
			case len(i.refs()) == 0:
				err = k.drop(ctx, i, "it has no name")
			case unused > k.cache.Keep:
				err = k.drop(ctx, i, fmt.Sprintf("no run is known to have used it for %s", unused.Round(time.Minute)))
			default:
				continue
			}
			if err != nil {
				return err
			}
			before--
		}
		if before == len(added) {
			return nil
		}
	}
}

// bound deletes what is too much: layers of builds first, then the images that were used longest ago.
func (k *keeping) bound(ctx context.Context) error {
	size := int64(min(k.cache.Size, 1<<62))
	for {
		u, err := k.boundBuilds(ctx, size) // again after images are deleted: builds may have layers of theirs
		if err != nil {
			return err
		}
		excess := k.imageBytes(u) + u.builds() - size
		if excess <= 0 {
			return nil
		}
		images, err := k.e.images(ctx)
		if err != nil {
			return err
		}
		oldest := oldestFirst(leaves(k.machine.added(images)), k.state.UsedAt)
		if len(oldest) == 0 {
			return refused("%d MiB are left of it without any image, and its size is %d MiB", (excess+size)>>20, size>>20)
		}
		for _, i := range oldest[:enough(oldest, u, excess)] {
			if err := k.drop(ctx, i, "there was no room for it, and it was used longest ago"); err != nil {
				return err
			}
		}
	}
}

// boundBuilds deletes layers of builds, the oldest first, beyond what images leave of the size.
func (k *keeping) boundBuilds(ctx context.Context, size int64) (usage, error) {
	for _, room := range []bool{true, false} {
		u, err := k.e.usage(ctx)
		if err != nil {
			return u, err
		}
		images := k.imageBytes(u)
		if u.builds() == 0 || images+u.builds() <= size {
			return u, nil
		}
		keep := int64(0)
		if room { // else the daemon has kept more than it was asked for
			keep = max(size-images, 0)
		}
		if err := k.e.pruneBuilds(ctx, keep); err != nil {
			return u, err
		}
	}
	return k.e.usage(ctx)
}

// imageBytes is what images have beside those of the machine.
func (k *keeping) imageBytes(u usage) int64 { return max(u.LayersSize-k.machine.LayersSize, 0) }

// oldestFirst are images in the order of their last use.
func oldestFirst(images []image, usedAt map[string]time.Time) []image {
	return slices.SortedFunc(slices.Values(images), func(a, b image) int {
		return cmp.Or(usedAt[a.ID].Compare(usedAt[b.ID]), cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
}

// enough is how many of the oldest images, at least one, have so many bytes that no other image has.
func enough(oldest []image, u usage, bytes int64) int {
	own := map[string]int64{}
	for _, i := range u.Images {
		own[i.ID] = max(i.Size-max(i.SharedSize, 0), 0)
	}
	for n, i := range oldest {
		if bytes -= own[i.ID]; bytes <= 0 {
			return n + 1
		}
	}
	return 1 // what they share cannot be said of one of them
}

// restoreNames gives images of the machine the names back that no image has now: a run gave them to one that has gone since, or deleted them.
func (k *keeping) restoreNames(ctx context.Context) error {
	images, err := k.e.images(ctx)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, i := range images {
		for _, tag := range i.tags() {
			taken[tag] = true
		}
	}
	for id, names := range k.machine.lostTags(images) {
		for _, name := range names {
			if taken[name] {
				continue
			}
			if err := k.e.tag(ctx, id, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish notes what the cache is now.
func (k *keeping) finish(ctx context.Context, now time.Time) error {
	images, err := k.list(ctx, now)
	if err != nil {
		return err
	}
	u, err := k.e.usage(ctx)
	if err != nil {
		return err
	}
	usedAt := map[string]time.Time{}
	for _, i := range images {
		usedAt[i.ID] = k.state.UsedAt[i.ID]
	}
	k.state = state{
		Key: k.cache.Key, Name: k.cache.Name, Bytes: k.imageBytes(u) + u.builds(), CommittedAt: now.UTC().Round(0), UsedAt: usedAt,
		BootID: k.state.BootID, Verified: k.layers,
	}
	k.outcome.Kept, k.outcome.Bytes = true, k.state.Bytes
	k.outcome.Reason = fmt.Sprintf("it has %d images and %d layers of builds; %d images were deleted", len(images), len(u.BuildCache), len(k.outcome.Dropped))
	return nil
}
