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

// Trim deletes, while the disk lacks room, the views that a commit of these names keeps in no case: no cache leaves to make room for them. It is to be
// called before Evict, when no run sees a view.
func (s *Store) Trim(names []string) error {
	for _, c := range s.loadView().Caches {
		lacks, err := s.lacksRoom()
		if err != nil || lacks == "" {
			return err
		}
		reason := s.notKept(c, names)
		if reason == nil {
			continue
		}
		s.log.Info("view deleted", logkey.Cache, c.Name, logkey.CacheKey, c.Key, logkey.Reason, fmt.Sprintf("%s; %s", reason, lacks))
		if err := tree.Remove(s.path(viewDir, c.Key)); err != nil {
			return fmt.Errorf("delete the view of cache %s: %w", c.Name, err)
		}
	}
	return nil
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
		if err != nil || lacks == "" {
			return err
		}
		last := held[len(held)-1]
		held = held[:len(held)-1]
		if err := s.evict(last, lacks); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) evict(h Held, reason string) error {
	s.log.Info("cache evicted", logkey.Cache, h.Name, logkey.CacheKey, h.Key, logkey.Bytes, h.Bytes, logkey.Reason, reason)
	return s.Remove(h.Key)
}

// lacksRoom says what the disk of the store lacks; empty: nothing. The rest of the host needs nothing of a volume that the caches have for themselves, so
// there a tenth is left for what runs change.
func (s *Store) lacksRoom() (string, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.o.Dir, &disk); err != nil {
		return "", fmt.Errorf("read free space of %s: %w", s.o.Dir, err)
	}
	own, err := s.hasVolume()
	if err != nil {
		return "", err
	}
	free, needed, files := disk.Bavail*uint64(disk.Bsize), s.o.MinimumFree, s.o.MinimumFreeFiles
	if own {
		needed, files = disk.Blocks*uint64(disk.Bsize)/10, disk.Files/10
	}
	switch {
	case free < needed:
		return fmt.Sprintf("%d MiB are free on the disk and %d are needed", free>>20, needed>>20), nil
	case disk.Files > 0 && disk.Ffree < files: // btrfs counts none
		return fmt.Sprintf("%d more files fit on the disk and %d are needed", disk.Ffree, files), nil
	}
	return "", nil
}

// hasVolume reports whether the store is on another file system than the directory that it is in.
func (s *Store) hasVolume() (bool, error) {
	var here, above unix.Stat_t
	if err := errors.Join(unix.Stat(s.o.Dir, &here), unix.Stat(filepath.Dir(s.o.Dir), &above)); err != nil {
		return false, fmt.Errorf("look at %s: %w", s.o.Dir, err)
	}
	return here.Dev != above.Dev, nil
}
