// Package cachestore keeps the caches of a host: directories of jobs that outlive the run.
//
// A run never writes to a cache. It works on a view of its own (Attach), which begins as the committed state and is copied on write. When the run
// is over and nothing of it is left running, the view becomes the next committed state (Commit) or is deleted (Discard).
//
// The committed state is a stack of layers. A layer is a tree that never changes, with a list of what is in it. It is what one run left, checked
// and stripped of all that is not plain content (see seal). To a cache of tools a run only adds (see keepNewTools), and to a read-only one the host does
// (see Options.Fill). Below the directory of the store, which only root or the agent's own user may enter, are
//
//	KEY/current     the committed state: its layers and the digest of each one's list; replaced as a whole
//	KEY/ID/N        a layer: the tree of the cache's path number N
//	KEY/ID.list     what is in it
//	view.json       what is attached, and where
//	view/KEY/N      what the run sees at a path, or with overlayfs what it has changed
//
// A crash at any step leaves the last committed state: what current does not name is deleted later, and a view is never used twice.
package cachestore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/safefile"
	"github.com/remuda-ci/remuda/internal/tree"
)

// Options configure a store. All are required, except MinimumFree, MinimumFreeFiles, Fill, Lender and Logger.
type Options struct {
	// Dir is the directory of the store. It is made if it is missing.
	Dir string
	// Owner is the user of jobs. All content of a cache belongs to it.
	Owner tree.Owner
	// BootID identifies this boot of the machine.
	BootID string
	// Mechanism is how views are made.
	Mechanism Mechanism
	// MinimumFree is what Evict keeps free on the disk, in bytes. On a volume of its own it is a tenth of that.
	MinimumFree uint64
	// MinimumFreeFiles is how many more files must fit on the disk. On a volume of its own it is a tenth of those that it can have.
	MinimumFreeFiles uint64
	// Fill adds files to the read-only cache of a name, in a directory below which none is yet. What Below has may not be added, except with
	// Filled.Whole or where a file takes the place of another. After an error what is there is kept: each file must be whole. It is required if there
	// is such a cache.
	Fill func(ctx context.Context, name, dir string, below Below) (Filled, error)
	// Lender is a directory from which repositories of git in jobs may read objects, as alternates; empty: there is none. No cache has such a repository.
	Lender string
	Logger hclog.Logger
}

// Below is what a read-only cache has before it is filled.
type Below struct {
	// Has reports whether there is a file of this path.
	Has func(path string) bool
	// Dirs are the directories of its layers, the newest first. Nothing may be changed there.
	Dirs []string
}

// Filled is what became of filling a cache.
type Filled struct {
	// Added is how many it has added.
	Added int
	// Whole: what is added is the whole cache, and what was below is not needed any more.
	Whole bool
}

// Store is the caches of one host. Only one process at a time may change it.
type Store struct {
	o   Options
	log hclog.Logger
}

// New returns the store in a directory.
func New(o Options) (*Store, error) {
	if !filepath.IsAbs(o.Dir) || filepath.Clean(o.Dir) != o.Dir {
		return nil, fmt.Errorf("open caches: %q is not a clean absolute path", o.Dir)
	}
	if o.Mechanism == nil {
		return nil, errors.New("open caches: no mechanism for views is given")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open caches: %w", err)
	}
	return &Store{o: o, log: cmp.Or(o.Logger, hclog.NewNullLogger())}, nil
}

// MaxCaches is how many caches a host keeps: those that were used last. The report of a host names them all.
const MaxCaches = 16

// Cache is what a host may keep for some of its runs.
type Cache struct {
	// Key identifies the cache on its host: 16 hexadecimal digits, which differ for each trust key, scope and name.
	Key  string `json:"key"`
	Name string `json:"name"`
	// Targets are the directories of a job, as absolute paths below its home.
	Targets []string `json:"targets"`
	// Tools: it is a cache of tools, which has one target. A commit adds the versions that a run has added, and nothing else: see keepNewTools.
	Tools bool `json:"tools,omitempty"`
	// ReadOnly: jobs can only read it, and a commit adds what Options.Fill adds. It has one target, and belongs to the calling user.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Connected: the layers of a read-only cache need each other, so that one that is too large is deleted instead of begun again with the newest.
	Connected bool `json:"connected,omitempty"`
	// ImageDir is the directory of what the image has of it, for the views of overlayfs. It need not be there.
	ImageDir string `json:"imageDir,omitempty"`
	// Size is the most that a committed state may have, in bytes.
	Size uint64 `json:"size"`
	// Keep is how long after its last use the cache is kept.
	Keep time.Duration `json:"keep"`
}

// adds reports whether commits add to the cache, and change nothing of what is there. Then each layer is sound without the others, unless the cache is
// Connected.
func (c Cache) adds() bool { return c.Tools || c.ReadOnly }

var validKey = regexp.MustCompile(`^[0-9a-f]{16}$`)

func (c Cache) check() error {
	switch {
	case !validKey.MatchString(c.Key):
		return fmt.Errorf("cache %q: its key %q is not 16 hexadecimal digits", c.Name, c.Key)
	case len(c.Targets) == 0:
		return fmt.Errorf("cache %q has no path", c.Name)
	case c.adds() && len(c.Targets) > 1:
		return fmt.Errorf("cache %q, to which runs only add, has %d paths", c.Name, len(c.Targets))
	}
	return nil
}

// Held is what the host has of one cache.
type Held struct {
	Key  string
	Name string
	// Bytes is what its layers take on the disk.
	Bytes               uint64
	CommittedAt, UsedAt time.Time
	keep                time.Duration
	files               uint64
}

// state is the content of KEY/current.
type state struct {
	Name     string `json:"name"`
	Paths    int    `json:"paths"`
	Tools    bool   `json:"tools,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	// Image is the identity of the tools of the image that the layers are for: see image.
	Image string        `json:"image,omitempty"`
	Keep  time.Duration `json:"keep"`
	// Layers are the layers, the newest first.
	Layers      []layer   `json:"layers"`
	CommittedAt time.Time `json:"committedAt"`
	// BootID is the boot in which the layers were written, or last compared with their lists.
	BootID string `json:"bootId"`
}

// layer is one layer of a committed state.
type layer struct {
	ID string `json:"id"`
	// Digest is the SHA-256 of its list, in hexadecimal digits.
	Digest string `json:"digest"`
	Bytes  uint64 `json:"bytes"`
	Files  int    `json:"files"`
}

func (s state) bytes() (sum uint64) {
	for _, l := range s.Layers {
		sum += l.Bytes
	}
	return sum
}

func (s state) files() (sum uint64) {
	for _, l := range s.Layers {
		sum += uint64(l.Files)
	}
	return sum
}

// ownerOf is the user to which the content of a cache belongs.
func (s *Store) ownerOf(readOnly bool) tree.Owner {
	if readOnly {
		return tree.Owner{UID: os.Geteuid(), GID: os.Getegid()}
	}
	return s.o.Owner
}

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.o.Dir}, elem...)...)
}

// load reads the committed state of a cache. There is none: fs.ErrNotExist.
func (s *Store) load(key string) (state, error) {
	data, err := safefile.Read(s.path(key, currentFile))
	if err != nil {
		return state{}, err
	}
	var st state
	if err := json.Unmarshal(data, &st); err != nil {
		return state{}, fmt.Errorf("cache %s: %w: %w", key, ErrCorrupt, err)
	}
	return st, st.check(key)
}

// check refuses a state that this package has not written.
func (s state) check(key string) error {
	for _, l := range s.Layers {
		if !validKey.MatchString(l.ID) {
			return fmt.Errorf("cache %s: %w: it has a layer %q", key, ErrCorrupt, l.ID)
		}
	}
	if s.Paths < 1 || len(s.Layers) == 0 {
		return fmt.Errorf("cache %s: %w: it has no layer", key, ErrCorrupt)
	}
	return nil
}

const currentFile = "current"

// save replaces the committed state. Until then the old one holds.
func (s *Store) save(key string, st state) error {
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return safefile.Replace(s.path(key, currentFile), data, 0o600, true)
}

// ErrCorrupt means that a committed state is not what was committed. Such a cache is deleted.
var ErrCorrupt = errors.New("the cache is not what was committed")

// Held lists the caches of the host, those that were used last first. What cannot be read is left out.
func (s *Store) Held() ([]Held, error) {
	keys, err := s.keys()
	if err != nil {
		return nil, err
	}
	var held []Held
	for _, key := range keys {
		st, err := s.load(key)
		info, statErr := os.Stat(s.path(key, currentFile))
		if err != nil || statErr != nil {
			continue
		}
		held = append(held, Held{
			Key: key, Name: st.Name, Bytes: st.bytes(), CommittedAt: st.CommittedAt, UsedAt: info.ModTime(), keep: st.Keep, files: st.files(),
		})
	}
	slices.SortStableFunc(held, func(a, b Held) int { return b.UsedAt.Compare(a.UsedAt) })
	return held, nil
}

// keys are the names of all caches, whole or not.
func (s *Store) keys() ([]string, error) {
	entries, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return nil, fmt.Errorf("list caches: %w", err)
	}
	var keys []string
	for _, e := range entries {
		if validKey.MatchString(e.Name()) {
			keys = append(keys, e.Name())
		}
	}
	return keys, nil
}

// Remove deletes a cache. One that is not there is no error.
func (s *Store) Remove(key string) error {
	if !validKey.MatchString(key) {
		return fmt.Errorf("delete cache: %q is not a key", key)
	}
	if err := s.forget(key); err != nil {
		return err
	}
	if err := tree.Remove(s.path(key)); err != nil {
		return fmt.Errorf("delete cache %s: %w", key, err)
	}
	return nil
}

// Has reports whether there is a committed state of a cache.
func (s *Store) Has(key string) bool {
	if !validKey.MatchString(key) {
		return false
	}
	_, err := os.Lstat(s.path(key, currentFile))
	return err == nil
}

// forget deletes the state of a cache: without it it is no cache any more, also if the rest cannot be deleted. The next Discard deletes that.
func (s *Store) forget(key string) error {
	if !validKey.MatchString(key) {
		return fmt.Errorf("delete cache: %q is not a key", key)
	}
	if err := os.Remove(s.path(key, currentFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete cache %s: %w", key, err)
	}
	return nil
}

// drop deletes a cache for a reason.
func (s *Store) drop(key string, why error) error {
	s.log.Warn("cache dropped", logkey.CacheKey, key, logkey.Reason, why)
	return s.Remove(key)
}
