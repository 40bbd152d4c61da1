package cachestore

import (
	"fmt"
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
		free, err := s.free()
		if err != nil || free >= s.o.MinimumFree {
			return err
		}
		last := held[len(held)-1]
		held = held[:len(held)-1]
		reason := fmt.Sprintf("%d MiB are free on the disk and %d are needed", free>>20, s.o.MinimumFree>>20)
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

// free is what the user of jobs may still write on the disk of the store, in bytes.
func (s *Store) free() (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(s.o.Dir, &st); err != nil {
		return 0, fmt.Errorf("read free space of %s: %w", s.o.Dir, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}
