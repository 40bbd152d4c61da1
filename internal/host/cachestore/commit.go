package cachestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/tree"
)

// mostLayers bounds the stack: each layer costs overlayfs a lookup for each name. Beyond it all layers are merged.
const mostLayers = 8

// mostLayers is one for views that are copies.
func (s *Store) mostLayers() int {
	if s.o.Mechanism.layered() {
		return mostLayers
	}
	return 1
}

// Outcome is what became of one cache at the end of an assignment.
type Outcome struct {
	Key  string `json:"key"`
	Name string `json:"name"`
	// Committed: the next run begins with what this one has left. It is true of one that nothing has changed too.
	Committed bool `json:"committed"`
	// Reason is a sentence for the log.
	Reason string `json:"reason"`
	// Bytes is what the layers take now.
	Bytes uint64 `json:"bytes"`
}

// Commit makes the views of the last assignment before this one the committed state of the caches of these names, and deletes all views. No process
// of a job may be left. What is refused is discarded, by itself. An error says that the store does not work; then the views are gone or must be discarded.
func (s *Store) Commit(ctx context.Context, assignment int64, names []string) ([]Outcome, error) {
	v := s.loadView()
	if err := s.Hide(); err != nil {
		return nil, fmt.Errorf("commit caches: %w", err)
	}
	var outcomes []Outcome
	for _, c := range fetchedLast(v.Caches) {
		if !slices.Contains(names, c.Name) {
			continue
		}
		o, err := s.commit(ctx, v, c, assignment)
		if err != nil {
			var refusal *RefusedError
			if !errors.As(err, &refusal) && !errors.Is(err, ErrCorrupt) {
				return outcomes, fmt.Errorf("commit cache %s: %w", c.Name, err)
			}
			o = Outcome{Name: c.Name, Reason: err.Error()}
			if errors.Is(err, ErrCorrupt) {
				if err := s.drop(c.Key, err); err != nil {
					return outcomes, err
				}
			}
		}
		o.Key = c.Key
		outcomes = append(outcomes, o)
	}
	return outcomes, s.Discard()
}

// fetchedLast are caches with those that are filled by fetching at the end: if that takes all of the time, no other is lost for it.
func fetchedLast(caches []attached) (sorted []attached) {
	for _, last := range []bool{false, true} {
		for _, c := range caches {
			if c.ReadOnly == last {
				sorted = append(sorted, c)
			}
		}
	}
	return sorted
}

func (s *Store) commit(ctx context.Context, v view, c attached, assignment int64) (Outcome, error) {
	if err := s.mayCommit(v, c, assignment); err != nil {
		return Outcome{}, err
	}
	below, err := s.shownBy(c.Key, c.Base)
	if err != nil {
		return Outcome{}, err
	}
	begun := len(c.Base) > 0
	o, err := s.commitView(ctx, c, below)
	var refusal *RefusedError
	if c.Connected && begun && errors.As(err, &refusal) && refusal.TooLarge { // it would be refused again after each run, and never be new
		return Outcome{Name: c.Name, Reason: "it was full, and begins again with the next run"}, s.forget(c.Key)
	}
	return o, err
}

// commitView makes what a view has, and what is added to that, the committed state.
func (s *Store) commitView(ctx context.Context, c attached, below shownBelow) (Outcome, error) {
	filled, err := s.addTo(ctx, c, below)
	if err == nil {
		err = s.measureAll(c)
	}
	if err == nil {
		err = s.leaveOutBorrowers(c)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Outcome{}, refused("a commit of it was interrupted")
	case err != nil:
		return Outcome{}, err
	case ctx.Err() != nil:
		return Outcome{}, ctx.Err()
	}
	if filled.Whole {
		c.Base, below = nil, nil
	}
	o, err := s.commitMeasured(ctx, c, below)
	if c.adds() && o.Committed {
		o.Reason = fmt.Sprintf("the run has added %d to it: %s", filled.Added, o.Reason)
	}
	return o, err
}

// addTo leaves in the changes of a view what a commit adds to a cache of the kind to which runs only add.
func (s *Store) addTo(ctx context.Context, c attached, below shownBelow) (Filled, error) {
	changes := s.o.Mechanism.changes(s.viewDir(c.Key, 0))
	has := func(path string) bool {
		_, ok := below.find("0/" + path)
		return ok || c.Image.has(path)
	}
	switch {
	case c.Tools:
		added, err := keepNewTools(changes, s.o.Mechanism.layered(), has)
		return Filled{Added: added}, err
	case c.ReadOnly:
		return s.fill(ctx, c, changes, has)
	}
	return Filled{}, nil
}

func (s *Store) fill(ctx context.Context, c attached, changes string, has func(path string) bool) (Filled, error) {
	if _, err := os.Lstat(changes); err != nil {
		return Filled{}, err
	}
	if err := tree.Clear(changes, s.ownerOf(true), 0o755); err != nil { // a job that is the agent's own user could have written there
		return Filled{}, err
	}
	below := Below{Has: has}
	for _, l := range c.Base {
		below.Dirs = append(below.Dirs, s.path(c.Key, l.ID, "0"))
	}
	filled, err := s.o.Fill(ctx, c.Name, changes, below)
	if err != nil {
		s.log.Warn("not all is added to a cache", logkey.Cache, c.Name, logkey.Reason, err)
	}
	return filled, nil
}

// measureAll refuses changes that are more than the cache may have.
func (s *Store) measureAll(c attached) error {
	var needed uint64
	for n := range c.Targets {
		size, err := measure(s.o.Mechanism.changes(s.viewDir(c.Key, n)), c.Size)
		if err != nil {
			return err
		}
		needed += size
	}
	if needed > c.Size {
		return tooLarge("it has more than %d MiB, which is its size", c.Size>>20)
	}
	return nil
}

// mayCommit refuses a view that does not begin where the committed state is: then another commit came between.
func (s *Store) mayCommit(v view, c attached, assignment int64) error {
	st, err := s.load(c.Key)
	switch {
	case v.Mechanism != s.o.Mechanism.Name() || v.BootID != s.o.BootID:
		return refused("its view was made in another boot")
	case v.Assignment >= assignment:
		return refused("its view is of assignment %d, and what has ended is before %d", v.Assignment, assignment)
	case errors.Is(err, fs.ErrNotExist) && len(c.Base) == 0:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return refused("it was deleted while the run had it")
	case err != nil:
		return err
	case !slices.Equal(st.Layers, c.Base):
		return refused("it was changed while the run had it")
	}
	return nil
}

// commitMeasured makes the changes a layer, and then that layer part of the committed state, in one write.
func (s *Store) commitMeasured(ctx context.Context, c attached, below shownBelow) (Outcome, error) {
	l, leftOut, err := s.seal(ctx, c, below)
	if err != nil {
		return Outcome{}, err
	}
	layers := c.Base
	switch {
	case !s.o.Mechanism.layered() && !c.adds():
		layers = []layer{l}
	case l.Files > 0:
		layers = append([]layer{l}, c.Base...)
	case len(c.Base) == 0:
		return Outcome{Name: c.Name, Committed: true, Reason: "the run has left nothing in it"}, nil
	}
	st := state{Name: c.Name, Paths: len(c.Targets), Keep: c.Keep, Layers: layers, CommittedAt: time.Now().UTC().Round(0), BootID: s.o.BootID}
	st.Tools, st.ReadOnly, st.Image = c.Tools, c.ReadOnly, c.Image.Identity
	if len(layers) > s.mostLayers() || st.bytes() > c.Size {
		if st.Layers, err = s.merge(c, layers); err != nil {
			return Outcome{}, err
		}
	}
	reason := fmt.Sprintf("the run has changed %d files", l.Files)
	if st.bytes() > c.Size && c.adds() && !c.Connected && l.Files > 0 && len(c.Base) > 0 {
		// Nothing says what no run needs any more. It begins again with what this run has added, and the next ones add theirs.
		st.Layers = []layer{l}
		reason += "; it was full, so what earlier runs have added is deleted"
	}
	if st.bytes() > c.Size {
		return Outcome{}, tooLarge("it has %d MiB, and its size is %d MiB", st.bytes()>>20, c.Size>>20)
	}
	if err := s.save(c.Key, st); err != nil {
		return Outcome{}, err
	}
	if leftOut > 0 {
		reason += fmt.Sprintf("; %d that are no plain files were left out", leftOut)
	}
	return Outcome{Name: c.Name, Committed: true, Reason: reason, Bytes: st.bytes()}, nil
}

// seal moves the changes of a view into a layer.
func (s *Store) seal(ctx context.Context, c attached, below shownBelow) (l layer, leftOut int, err error) {
	l.ID = newID()
	if err := os.MkdirAll(s.path(c.Key, l.ID), 0o700); err != nil {
		return l, 0, err
	}
	list, err := newListWriter(s.path(c.Key, l.ID+".list"))
	if err != nil {
		return l, 0, err
	}
	for n := range c.Targets {
		from := s.o.Mechanism.changes(s.viewDir(c.Key, n))
		list.prefix = strconv.Itoa(n) + "/"
		sealing := sealer{owner: s.ownerOf(c.ReadOnly), overlay: s.o.Mechanism.layered(), list: list, cut: ctx.Err}
		if sealing.overlay {
			sealing.below = func(path string) (shown, bool) { return below.find(list.prefix + path) }
		}
		if err := sealing.seal(from); err != nil {
			list.close()
			return l, 0, err
		}
		l.Bytes += sealing.done.bytes
		leftOut += sealing.done.leftOut
		if err := os.Rename(from, s.path(c.Key, l.ID, strconv.Itoa(n))); err != nil {
			list.close()
			return l, 0, err
		}
	}
	l.Files = list.lines
	l.Digest, err = list.close()
	return l, leftOut, err
}

// shown is what a layer has at a path.
type shown struct {
	line line
	at   string // where the file is
}

// shownBelow is the content of a stack of layers, the newest first.
type shownBelow []map[string]shown

// shownBy reads the lists of some layers.
func (s *Store) shownBy(key string, layers []layer) (shownBelow, error) {
	var all shownBelow
	for _, l := range layers {
		m := make(map[string]shown, l.Files)
		err := readList(s.path(key, l.ID+".list"), l.Digest, func(one line) error {
			path := one.path
			_, one.path, _ = strings.Cut(path, "/")
			m[path] = shown{one, s.path(key, l.ID, path)}
			return nil
		})
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// find returns what the stack shows at a path ("N/path").
func (b shownBelow) find(path string) (shown, bool) {
	for _, layer := range b {
		if have, ok := layer[path]; ok {
			return have, have.line.kind != kindWhiteout
		}
		for dir := filepath.Dir(path); strings.Contains(dir, "/"); dir = filepath.Dir(dir) {
			if have, ok := layer[dir]; ok && have.line.kind != kindDirectory {
				return shown{}, false
			}
		}
	}
	return shown{}, false
}

// merge makes one layer of all: it links the files that the stack shows. The layers themselves stay, for the committed state that names them.
func (s *Store) merge(c attached, layers []layer) ([]layer, error) {
	stack, err := s.shownBy(c.Key, layers)
	if err != nil {
		return nil, err
	}
	merged, owner := layer{ID: newID()}, s.ownerOf(c.ReadOnly)
	for n := range c.Targets {
		if err := os.MkdirAll(s.path(c.Key, merged.ID, strconv.Itoa(n)), 0o755); err != nil {
			return nil, err
		}
		if err := os.Chown(s.path(c.Key, merged.ID, strconv.Itoa(n)), owner.UID, owner.GID); err != nil {
			return nil, err
		}
	}
	list, err := newListWriter(s.path(c.Key, merged.ID+".list"))
	if err != nil {
		return nil, err
	}
	m := merger{owner: owner, dir: s.path(c.Key, merged.ID), list: list, inodes: map[uint64]bool{}}
	for _, path := range stack.paths() {
		have, ok := stack.find(path)
		if !ok {
			continue
		}
		have.line.path = path
		if err := m.add(have); err != nil {
			list.close()
			return nil, err
		}
	}
	merged.Bytes, merged.Files = m.bytes, list.lines
	if merged.Digest, err = list.close(); err != nil {
		return nil, err
	}
	return []layer{merged}, nil
}

// paths are all paths of a stack in the order of walker.
func (b shownBelow) paths() []string {
	all := map[string]bool{}
	for _, layer := range b {
		for path := range layer {
			all[path] = true
		}
	}
	paths := make([]string, 0, len(all))
	for path := range all {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, walkOrder)
	return paths
}

// walkOrder compares paths by their elements: what is in a directory comes right after it.
func walkOrder(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

type merger struct {
	owner  tree.Owner
	dir    string
	list   *listWriter
	inodes map[uint64]bool
	bytes  uint64
}

func (m *merger) add(have shown) error {
	to, l := filepath.Join(m.dir, have.line.path), have.line
	var st unix.Stat_t
	if err := unix.Lstat(have.at, &st); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	switch l.kind {
	case kindDirectory, kindOpaque:
		l.kind = kindDirectory
		err := os.Mkdir(to, 0o700)
		err = cmp.Or(err, os.Chown(to, m.owner.UID, m.owner.GID), os.Chmod(to, fs.FileMode(l.mode)))
		if err != nil {
			return err
		}
	default:
		if err := os.Link(have.at, to); err != nil { // of a symbolic link it is the link itself
			return err
		}
	}
	if !m.inodes[st.Ino] {
		m.bytes += takes(st)
	}
	m.inodes[st.Ino] = true
	return m.list.add(l)
}
