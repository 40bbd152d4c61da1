package cachestore

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/logkey"
)

// Evict deletes caches that were not used for as long as they are kept, those beyond MaxCaches, and, while less than MinimumFree is free on the disk,
// one after the other, the one that was used last at the end. It is to be called when no run has a view.
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

func (s *Store) makeRoom(held []Held) error {
	for len(held) > 0 {
		free, needed, err := s.room()
		if err != nil || free >= needed {
			return err
		}
		last := held[len(held)-1]
		held = held[:len(held)-1]
		reason := fmt.Sprintf("%d MiB are free on the disk and %d are needed", free>>20, needed>>20)
		if err := s.evict(last, reason); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) evict(h Held, reason string) error {
	s.log.Info("cache evicted", logkey.Cache, h.Name, logkey.CacheKey, h.Key, logkey.Bytes, h.Bytes, logkey.Reason, reason)
	return s.Remove(h.Key)
}

// room is what the user of jobs may still write on the disk of the store, and what must be free there, in bytes. The rest of the host needs nothing of
// a volume that the caches have for themselves, so there a tenth is left for what runs change.
func (s *Store) room() (free, needed uint64, err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.o.Dir, &disk); err != nil {
		return 0, 0, fmt.Errorf("read free space of %s: %w", s.o.Dir, err)
	}
	own, err := s.hasVolume()
	if err != nil {
		return 0, 0, err
	}
	needed = s.o.MinimumFree
	if own {
		needed = disk.Blocks * uint64(disk.Bsize) / 10
	}
	return disk.Bavail * uint64(disk.Bsize), needed, nil
}

// hasVolume reports whether the store is on another file system than the directory that it is in.
func (s *Store) hasVolume() (bool, error) {
	var here, above unix.Stat_t
	if err := errors.Join(unix.Stat(s.o.Dir, &here), unix.Stat(filepath.Dir(s.o.Dir), &above)); err != nil {
		return false, fmt.Errorf("look at %s: %w", s.o.Dir, err)
	}
	return here.Dev != above.Dev, nil
}
