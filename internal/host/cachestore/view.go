package cachestore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/safefile"
	"github.com/remuda-ci/remuda/internal/tree"
)

// view is the content of view.json: what is, or is about to be, attached.
type view struct {
	Assignment int64      `json:"assignment"`
	BootID     string     `json:"bootId"`
	Mechanism  string     `json:"mechanism"`
	Caches     []attached `json:"caches"`
}

// attached is a cache in a view, with the committed state that it began as.
type attached struct {
	Cache
	Base  []layer `json:"base,omitempty"`
	Image image   `json:"image,omitzero"`
}

const (
	viewFile = "view.json"
	viewDir  = "view"
)

func (s *Store) viewDir(key string, n int) string { return s.path(viewDir, key, strconv.Itoa(n)) }

// loadView reads what is attached; the zero view if nothing is, or if the file cannot be read.
func (s *Store) loadView() (v view) {
	data, err := safefile.Read(s.path(viewFile))
	if err != nil || json.Unmarshal(data, &v) != nil {
		return view{}
	}
	for _, c := range v.Caches {
		if c.check() != nil {
			return view{}
		}
	}
	return v
}

// Attach gives an assignment views of its caches below home, the home directory of jobs, in which no job of the assignment has run yet. It does
// nothing if the assignment has them already. A cache that cannot be attached is left out: the job goes on without it. The names of those that
// are attached are returned, and what went wrong with others. The caches with the keys in drop are deleted first. If that fails nothing is attached.
func (s *Store) Attach(ctx context.Context, assignment int64, home string, caches []Cache, drop []string) (names []string, err error) {
	if v := s.loadView(); v.Assignment == assignment && v.BootID == s.o.BootID && len(v.Caches) > 0 {
		return v.names(), nil
	}
	if err := s.Discard(); err != nil {
		return nil, fmt.Errorf("attach caches: %w", err)
	}
	for _, key := range drop {
		s.log.Warn("cache dropped", logkey.CacheKey, key, logkey.Reason, "an operator dropped it")
		if err := s.forget(key); err != nil { // a job waits: its files are deleted with the views of its run
			return nil, fmt.Errorf("attach caches: %w", err)
		}
	}
	v := view{Assignment: assignment, BootID: s.o.BootID, Mechanism: s.o.Mechanism.Name()}
	var wrong []error
	for _, c := range caches {
		a, err := s.makeView(ctx, c)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("attach cache %s: %w", c.Name, err))
			continue
		}
		v.Caches = append(v.Caches, a)
	}
	// It is written before anything is shown, so that whatever is shown can be hidden.
	if err := s.saveView(v); err != nil {
		return nil, errors.Join(append(wrong, fmt.Errorf("attach caches: %w", err))...)
	}
	shown := view{Assignment: v.Assignment, BootID: v.BootID, Mechanism: v.Mechanism}
	for _, c := range v.Caches {
		if err := s.show(home, c); err != nil {
			wrong = append(wrong, fmt.Errorf("attach cache %s: %w", c.Name, err))
			continue
		}
		shown.Caches = append(shown.Caches, c)
	}
	if len(shown.Caches) < len(v.Caches) { // what the run does not see cannot be committed
		wrong = append(wrong, s.saveView(shown))
	}
	return shown.names(), errors.Join(wrong...)
}

func (v view) names() (names []string) {
	for _, c := range v.Caches {
		names = append(names, c.Name)
	}
	return names
}

func (s *Store) saveView(v view) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return safefile.Replace(s.path(viewFile), data, 0o600, false)
}

// makeView makes the view of one cache. Its base is the committed state, which this use makes the one that was used last.
func (s *Store) makeView(ctx context.Context, c Cache) (attached, error) {
	if err := errors.Join(c.check(), ctx.Err()); err != nil {
		return attached{}, err
	}
	a := attached{Cache: c, Image: s.imageOf(c)}
	var err error
	if a.Base, err = s.baseOf(ctx, c, a.Image); err != nil {
		return attached{}, err
	}
	for n := range c.Targets {
		dir := s.viewDir(c.Key, n)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return attached{}, err
		}
		if err := s.o.Mechanism.make(dir, s.stackOf(a, n), s.ownerOf(c.ReadOnly)); err != nil {
			return attached{}, errors.Join(err, tree.Remove(s.path(viewDir, c.Key)))
		}
	}
	return a, nil
}

// imageOf is what the image has for a cache. One that cannot be used is left out: the jobs go on without it.
func (s *Store) imageOf(c Cache) image {
	if !s.o.Mechanism.layered() {
		return image{}
	}
	i, err := readImage(c.ImageDir)
	if err != nil {
		s.log.Warn("jobs do not see what the image has of a cache", logkey.Cache, c.Name, logkey.Reason, err)
	}
	if c.ReadOnly { // what is there has the same content wherever it is, and no job adds anything
		i.Identity, i.Above = "", nil
	}
	return i
}

// baseOf is the committed state that a view begins as, none if there is no use for it.
func (s *Store) baseOf(ctx context.Context, c Cache, i image) ([]layer, error) {
	st, err := s.load(c.Key)
	if err == nil && st.BootID != s.o.BootID { // Verify did not come to it
		err = s.verify(ctx, c.Key)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && (st.Paths != len(c.Targets) || st.Tools != c.Tools || st.ReadOnly != c.ReadOnly):
		return nil, s.drop(c.Key, errors.New("the pool has other paths for it now"))
	case err == nil && st.Image != i.Identity:
		return nil, s.drop(c.Key, errors.New("the image has other tools now"))
	case errors.Is(err, ErrCorrupt):
		return nil, s.drop(c.Key, err)
	case err != nil:
		return nil, err
	}
	now := time.Now()
	return st.Layers, os.Chtimes(s.path(c.Key, currentFile), now, now)
}

// stackOf is what a view has below it at a path.
func (s *Store) stackOf(a attached, n int) stack {
	st := stack{image: a.Image, readOnly: a.ReadOnly}
	for _, l := range a.Base {
		st.layers = append(st.layers, s.path(a.Key, l.ID, strconv.Itoa(n)))
	}
	return st
}

// show lets the run see a cache, all of its paths or none.
func (s *Store) show(home string, c attached) error {
	for n, target := range c.Targets {
		err := s.showAt(home, target, s.viewDir(c.Key, n), s.stackOf(c, n))
		if err != nil {
			return errors.Join(err, s.hide(c.Cache))
		}
	}
	return nil
}

func (s *Store) showAt(home, target, dir string, below stack) error {
	f, err := s.makeTarget(home, target)
	if err != nil {
		return err
	}
	defer f.Close()
	return s.o.Mechanism.show(dir, below, f)
}

// makeTarget makes a directory below home, with those above it, that belong to the user of jobs. It follows no link below home.
func (s *Store) makeTarget(home, target string) (*os.File, error) {
	below, ok := strings.CutPrefix(target, home+"/")
	if !ok {
		return nil, fmt.Errorf("%s is not below the home directory %s", target, home)
	}
	dir, err := os.Open(home)
	if err != nil {
		return nil, err
	}
	at := home
	for name := range strings.SplitSeq(below, "/") {
		at = filepath.Join(at, name)
		next, err := s.makeDirectory(dir, name, at)
		dir.Close()
		if err != nil {
			return nil, fmt.Errorf("make %s: %w", at, err)
		}
		dir = next
	}
	return dir, nil
}

func (s *Store) makeDirectory(parent *os.File, name, path string) (*os.File, error) {
	err := unix.Mkdirat(int(parent.Fd()), name, 0o755)
	made := err == nil
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if made {
		if err := unix.Fchown(fd, s.o.Owner.UID, s.o.Owner.GID); err != nil {
			unix.Close(fd)
			return nil, err
		}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (s *Store) hide(c Cache) (err error) {
	for _, target := range c.Targets {
		err = errors.Join(err, s.o.Mechanism.hide(target))
	}
	return err
}

// Hide ends that the run sees its caches. Its changes stay, for Commit. Of a view of another boot nothing is mounted any more, and a job of that boot
// may have replaced the directories above its targets.
func (s *Store) Hide() (err error) {
	v := s.loadView()
	if v.BootID != s.o.BootID && s.o.Mechanism.layered() {
		return nil
	}
	for _, c := range v.Caches {
		err = errors.Join(err, s.hide(c.Cache))
	}
	return err
}

// Discard deletes the views, with all that the run has changed.
func (s *Store) Discard() error {
	if err := s.Hide(); err != nil {
		return fmt.Errorf("discard caches: %w", err)
	}
	err := os.Remove(s.path(viewFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err := errors.Join(err, tree.Remove(s.path(viewDir))); err != nil {
		return fmt.Errorf("discard caches: %w", err)
	}
	return s.sweep()
}

// sweep deletes what no committed state names: what a crash has left.
func (s *Store) sweep() error {
	keys, err := s.keys()
	if err != nil {
		return err
	}
	for _, key := range keys {
		st, err := s.load(key)
		if errors.Is(err, fs.ErrNotExist) { // its first commit was cut short, or had nothing to keep
			if err := s.Remove(key); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			s.log.Warn("cache dropped", logkey.CacheKey, key, logkey.Reason, err)
			if err := s.Remove(key); err != nil {
				return err
			}
			continue
		}
		if err := s.sweepCache(key, st); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) sweepCache(key string, st state) error {
	entries, err := os.ReadDir(s.path(key))
	if err != nil {
		return err
	}
	named := map[string]bool{currentFile: true}
	for _, l := range st.Layers {
		named[l.ID], named[l.ID+".list"] = true, true
	}
	for _, e := range entries {
		if !named[e.Name()] {
			if err := tree.Remove(s.path(key, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// newID is the name of a new layer.
func newID() string {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}
