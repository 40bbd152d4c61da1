package cachestore

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/tree"
)

// Evict deletes caches that were not used for as long as they are kept, those beyond MaxCaches, and, while less than MinimumFree is free on the disk,
// or fewer files than MinimumFreeFiles fit there, one after the other, the one that was used last at the end. It is to be called when no run has a view.
func (s *Store) Evict(now time.Time) error {
	held, err := s.Held()
	if err != nil {
		return err
	}
	kept := held[:0]
	for i, h := range held {
		reason := ""
		switch unused := now.Sub(h.UsedAt); {
		case h.keep > 0 && unused > h.keep:
			reason = fmt.Sprintf("no run has used it for %s", unused.Round(time.Minute))
		case i >= MaxCaches:
			reason = fmt.Sprintf("%d others were used later", MaxCaches)
		default:
			kept = append(kept, h)
			continue
		}
		if err := s.evict(h, reason); err != nil {
			return err
		}
	}
	return s.makeRoom(kept)
}

// Trim deletes, while the disk lacks room, the views that a commit of these names keeps in no case: no cache leaves to make room for them. If all caches
// that no view begins as could not make the room either, it deletes views too, since a commit keeps none whose cache had to leave. It is to be called
// before Evict, when no run sees a view.
func (s *Store) Trim(names []string) error {
	views := s.loadView().Caches
	for _, c := range views {
		lacks, err := s.lacksRoom()
		if err != nil || !lacks.any() {
			return err
		}
		reason := s.notKept(c, names)
		if reason == nil {
			continue
		}
		if err := s.deleteView(c, fmt.Sprintf("%s; %s", reason, lacks)); err != nil {
			return err
		}
	}
	return s.trimGreedy(views)
}

// trimGreedy deletes views until the caches that no view begins as could make the room that the disk lacks.
func (s *Store) trimGreedy(views []attached) error {
	others, err := s.takenWithout(views)
	if err != nil {
		return err
	}
	for _, c := range views {
		lacks, err := s.lacksRoom()
		if err != nil || lacks.bytes <= others.bytes && lacks.files <= others.files {
			return err
		}
		if err := s.deleteView(c, fmt.Sprintf("all other caches together could not make the room; %s", lacks)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) deleteView(c attached, reason string) error {
	s.log.Info("view deleted", logkey.Cache, c.Name, logkey.CacheKey, c.Key, logkey.Reason, reason)
	if err := tree.Remove(s.path(viewDir, c.Key)); err != nil {
		return fmt.Errorf("delete the view of cache %s: %w", c.Name, err)
	}
	return nil
}

// takenWithout is the room that the caches take which none of these views begins as.
func (s *Store) takenWithout(views []attached) (taken room, err error) {
	held, err := s.Held()
	for _, h := range held {
		if !slices.ContainsFunc(views, func(c attached) bool { return c.Key == h.Key }) {
			taken.bytes += h.Bytes
			taken.files += h.files
		}
	}
	return taken, err
}

// notKept says why a commit of these names would not keep a view, as far as is known before it; nil: it may.
func (s *Store) notKept(c attached, names []string) error {
	switch {
	case !slices.Contains(names, c.Name):
		return errors.New("it is not to be kept")
	case c.adds(): // it is measured without what the run did not add
		return nil
	}
	var refusal *RefusedError
	if err := s.measureAll(c); errors.As(err, &refusal) {
		return refusal
	}
	return nil // another error is the commit's to report
}

func (s *Store) makeRoom(held []Held) error {
	for len(held) > 0 {
		lacks, err := s.lacksRoom()
		if err != nil || !lacks.any() {
			return err
		}
		last := held[len(held)-1]
		held = held[:len(held)-1]
		if err := s.evict(last, lacks.String()); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) evict(h Held, reason string) error {
	s.log.Info("cache evicted", logkey.Cache, h.Name, logkey.CacheKey, h.Key, logkey.Bytes, h.Bytes, logkey.Reason, reason)
	return s.Remove(h.Key)
}

// room is some of a disk.
type room struct{ bytes, files uint64 }

// shortage is the room that a disk lacks.
type shortage struct {
	room
	free, needed room
}

func (l shortage) any() bool { return l.room != room{} }

func (l shortage) String() string {
	if l.bytes > 0 {
		return fmt.Sprintf("%d MiB are free on the disk and %d are needed", l.free.bytes>>20, l.needed.bytes>>20)
	}
	return fmt.Sprintf("%d more files fit on the disk and %d are needed", l.free.files, l.needed.files)
}

// lacksRoom returns what the disk of the store lacks. The rest of the host needs nothing of a volume that the caches have for themselves, so there a tenth
// is left for what runs change.
func (s *Store) lacksRoom() (shortage, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.o.Dir, &disk); err != nil {
		return shortage{}, fmt.Errorf("read free space of %s: %w", s.o.Dir, err)
	}
	own, err := s.hasVolume()
	if err != nil {
		return shortage{}, err
	}
	l := shortage{free: room{disk.Bavail * uint64(disk.Bsize), disk.Ffree}, needed: room{s.o.MinimumFree, s.o.MinimumFreeFiles}}
	if own {
		l.needed = room{disk.Blocks * uint64(disk.Bsize) / 10, disk.Files / 10}
	}
	if disk.Files == 0 { // btrfs counts none
		l.needed.files = 0
	}
	l.bytes, l.files = l.needed.bytes-min(l.free.bytes, l.needed.bytes), l.needed.files-min(l.free.files, l.needed.files)
	return l, nil
}

// hasVolume reports whether the store is on another file system than the directory that it is in.
func (s *Store) hasVolume() (bool, error) {
	var here, above unix.Stat_t
	if err := errors.Join(unix.Stat(s.o.Dir, &here), unix.Stat(filepath.Dir(s.o.Dir), &above)); err != nil {
		return false, fmt.Errorf("look at %s: %w", s.o.Dir, err)
	}
	return here.Dev != above.Dev, nil
}
