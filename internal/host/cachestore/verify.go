package cachestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/tree"
)

// Verify compares every committed state with its lists, and deletes those that differ. Layers that were written in this boot, or verified in it, are
// compared by all but content: no job can write to them. After a boot the content is read too, since a crash may have lost what was written.
// It is to be called before the first Attach of a boot; what it did not come to is verified when it is next used.
func (s *Store) Verify(ctx context.Context) error {
	keys, err := s.keys()
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("verify caches: %w", err)
		}
		err := s.verify(ctx, key)
		switch {
		case errors.Is(err, ErrCorrupt), errors.Is(err, fs.ErrNotExist):
			if err := s.drop(key, err); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("verify cache %s: %w", key, err)
		}
	}
	return nil
}

func (s *Store) verify(ctx context.Context, key string) error {
	st, err := s.load(key)
	if err != nil {
		return err
	}
	content := st.BootID != s.o.BootID
	for _, l := range st.Layers {
		if err := s.verifyLayer(ctx, key, st, l, content); err != nil {
			return err
		}
	}
	if !content {
		return nil
	}
	info, err := os.Stat(s.path(key, currentFile))
	if err != nil {
		return err
	}
	st.BootID = s.o.BootID
	if err := s.save(key, st); err != nil {
		return err
	}
	return os.Chtimes(s.path(key, currentFile), info.ModTime(), info.ModTime()) // it was not used
}

// verifyLayer walks a layer and reads its list side by side.
func (s *Store) verifyLayer(ctx context.Context, key string, st state, l layer, content bool) error {
	v := verifier{owner: s.ownerOf(st.ReadOnly), ctx: ctx, content: content}
	var want []line
	err := readList(s.path(key, l.ID+".list"), l.Digest, func(one line) error {
		want = append(want, one)
		return nil
	})
	if err != nil {
		return err
	}
	v.want = want
	for n := range st.Paths {
		v.prefix = strconv.Itoa(n) + "/"
		w := walker{do: v.entry}
		if err := w.walk(s.path(key, l.ID, strconv.Itoa(n))); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	if len(v.want) > 0 {
		return fmt.Errorf("%w: %q is missing", ErrCorrupt, shorten(v.want[0].path))
	}
	return nil
}

type verifier struct {
	owner   tree.Owner
	ctx     context.Context
	content bool
	prefix  string
	want    []line // that are still to come
}

func (v *verifier) entry(e entry) error {
	at := v.prefix + e.path
	if len(v.want) == 0 || v.want[0].path != at {
		return fmt.Errorf("%w: %q is not in its list", ErrCorrupt, shorten(at))
	}
	want := v.want[0]
	v.want = v.want[1:]
	if err := v.ctx.Err(); err != nil {
		return err
	}
	if have := kindOf(e); have != want.kind && !(have == kindDirectory && want.kind == kindOpaque) {
		return fmt.Errorf("%w: %q is of another kind", ErrCorrupt, shorten(at))
	}
	if want.kind != kindWhiteout && (int(e.stat.Uid) != v.owner.UID || int(e.stat.Gid) != v.owner.GID) {
		return fmt.Errorf("%w: %q has another owner", ErrCorrupt, shorten(at))
	}
	if want.kind != kindWhiteout && want.kind != kindLink && e.stat.Mode&0o7777 != want.mode {
		return fmt.Errorf("%w: %q has another mode", ErrCorrupt, shorten(at))
	}
	return v.compareContent(e, want, at)
}

func (v *verifier) compareContent(e entry, want line, at string) error {
	switch {
	case want.kind == kindLink:
		target, err := readLink(e)
		if err != nil || digestOf(target) != want.digest {
			return errors.Join(err, fmt.Errorf("%w: the link %q has another target", ErrCorrupt, shorten(at)))
		}
	case want.kind == kindFile && e.stat.Size != want.size:
		return fmt.Errorf("%w: %q has another size", ErrCorrupt, shorten(at))
	case want.kind == kindFile && v.content:
		digest, err := contentDigest(e)
		if err != nil || digest != want.digest {
			return errors.Join(err, fmt.Errorf("%w: %q has another content", ErrCorrupt, shorten(at)))
		}
	}
	return nil
}

func contentDigest(e entry) (string, error) {
	f, err := e.open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func kindOf(e entry) byte {
	switch e.kind() {
	case unix.S_IFREG:
		return kindFile
	case unix.S_IFDIR:
		return kindDirectory
	case unix.S_IFLNK:
		return kindLink
	case unix.S_IFCHR:
		return kindWhiteout
	}
	return 0
}
