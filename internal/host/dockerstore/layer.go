package dockerstore

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// digestForm is a SHA-256 as docker writes it.
var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// maxEntries bounds the files of a layer.
const maxEntries = 1_000_000

// differsError says in what an image or a layer is not what its digest says.
type differsError struct{ what string }

func (e *differsError) Error() string { return e.what }

func differs(format string, args ...any) error { return &differsError{fmt.Sprintf(format, args...)} }

// disk is docker's store in its files, by the storage driver overlay2 (moby: layer/filestore.go, image/fs.go).
type disk struct{ root string }

// checkConfig compares the configuration of an image with its id, which is the digest of it.
func (d disk) checkConfig(id string) error {
	if !digestForm.MatchString(id) {
		return differs("its id is no digest")
	}
	data, err := os.ReadFile(filepath.Join(d.root, "image/overlay2/imagedb/content/sha256", strings.TrimPrefix(id, "sha256:")))
	if err != nil {
		return differs("its configuration cannot be read: %v", err)
	}
	if digestOf(data) != id {
		return differs("its configuration has another digest")
	}
	return nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// chains are the chain ids of a stack of layers: each is of a layer and all below it (OCI image specification, Layer ChainID).
func chains(layers []string) []string {
	ids := make([]string, len(layers))
	for n, l := range layers {
		if ids[n] = l; n > 0 {
			ids[n] = digestOf([]byte(ids[n-1] + " " + l))
		}
	}
	return ids
}

// layerOf is what docker knows of a layer.
func (d disk) layerOf(chain string) string {
	return filepath.Join(d.root, "image/overlay2/layerdb/sha256", strings.TrimPrefix(chain, "sha256:"))
}

// directory is the name of the directory that a layer was unpacked to. Each time it is unpacked it gets another one.
func (d disk) directory(chain string) (string, error) {
	if !digestForm.MatchString(chain) {
		return "", differs("a layer has no digest")
	}
	id, err := os.ReadFile(filepath.Join(d.layerOf(chain), "cache-id"))
	if err != nil {
		return "", differs("a layer has no files: %v", err)
	}
	if strings.ContainsAny(string(id), "/.\x00") || len(id) == 0 {
		return "", differs("a layer has the directory %.80q", id)
	}
	return string(id), nil
}

// checkLayer compares a layer with its digest: the files that containers see make the archive that docker once unpacked, and there is nothing else.
func (d disk) checkLayer(ctx context.Context, chain, id, digest string) error {
	meta := d.layerOf(chain)
	split, err := os.Open(filepath.Join(meta, "tar-split.json.gz"))
	if err != nil {
		return differs("a layer has no list: %v", err)
	}
	defer split.Close()
	dir, err := os.OpenRoot(filepath.Join(d.root, "overlay2", id, "diff"))
	if err != nil {
		return differs("a layer has no files: %v", err)
	}
	defer dir.Close()
	err = checkArchive(ctx, split, dir, digest)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// checkArchive puts the archive of a layer together again, and looks at each entry of it in the directory.
func checkArchive(ctx context.Context, split io.Reader, dir *os.Root, digest string) error {
	r, w := io.Pipe()
	sum := sha256.New()
	go func() { w.CloseWithError(assemble(ctx, split, dir, w)) }()
	l := listing{dir: dir, seen: map[string]bool{".": true}, parents: map[string]bool{}}
	err := l.checkAll(tar.NewReader(io.TeeReader(r, sum)))
	if err == nil { // what comes after the last entry is of the archive too
		_, err = io.Copy(sum, r)
	}
	r.CloseWithError(errors.New("no more is read"))
	var differ *differsError
	switch {
	case errors.As(err, &differ):
		return err
	case err != nil:
		return differs("a layer cannot be read: %v", err)
	case "sha256:"+hex.EncodeToString(sum.Sum(nil)) != digest:
		return differs("a layer has another digest than %s", digest)
	}
	return l.checkOthers()
}

// splitEntry is a line of tar-split.json.gz: bytes of the archive, or the name of a file whose content stands there (vbatts/tar-split).
type splitEntry struct {
	Type    int    `json:"type"` // 1: a file; 2: bytes
	Name    string `json:"name"`
	NameRaw []byte `json:"name_raw"` // in place of a name that is no UTF-8
	Size    int64  `json:"size"`
	Payload []byte `json:"payload"`
}

// assemble writes the archive of a layer from its list and its files.
func assemble(ctx context.Context, split io.Reader, dir *os.Root, to io.Writer) error {
	unpacked, err := gzip.NewReader(bufio.NewReader(split))
	if err != nil {
		return err
	}
	for dec := json.NewDecoder(bufio.NewReader(unpacked)); ctx.Err() == nil; {
		var e splitEntry
		err := dec.Decode(&e)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case e.Type == 2:
			_, err = to.Write(e.Payload)
		case e.Type == 1 && e.Size > 0:
			err = copyFile(to, dir, e)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func copyFile(to io.Writer, dir *os.Root, e splitEntry) error {
	name := e.Name
	if name == "" {
		name = string(e.NameRaw)
	}
	f, err := dir.OpenFile(inDirectory(name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return differs("the file %.200q of a layer cannot be read: %v", name, err)
	}
	defer f.Close()
	n, err := io.Copy(to, io.LimitReader(f, e.Size))
	if err == nil && n < e.Size {
		err = differs("the file %.200q of a layer has %d bytes and not %d", name, n, e.Size)
	}
	return err
}

// inDirectory is the path of an entry below the directory of a layer.
func inDirectory(name string) string {
	return path.Clean("." + path.Clean("/"+name))
}

// listing compares the entries of an archive with a directory.
type listing struct {
	dir *os.Root
	// seen are the paths that the archive has, and parents the directories above them.
	seen, parents map[string]bool
}

func (l *listing) checkAll(r *tar.Reader) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.check(h); err != nil {
			return err
		}
	}
}

// The names of an archive by which a layer hides what is below it. In the directory the first is a device, and the second an attribute.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// check compares one entry.
func (l *listing) check(h *tar.Header) error {
	if h.Typeflag == tar.TypeXGlobalHeader { // no file: docker unpacks none
		return nil
	}
	at := inDirectory(h.Name)
	if at == "." { // docker leaves the directory itself as it has made it (moby: pkg/archive, Unpack)
		return nil
	}
	dir, base := path.Split(at)
	hides := false
	switch {
	case base == opaque:
		return nil
	case strings.HasPrefix(base, whiteout+whiteout): // of aufs
		return nil
	case strings.HasPrefix(base, whiteout):
		at, hides = dir+strings.TrimPrefix(base, whiteout), true
	}
	if l.seen[at] = true; len(l.seen) > maxEntries {
		return differs("a layer has more than %d files", maxEntries)
	}
	for up := path.Dir(at); up != "." && !l.parents[up]; up = path.Dir(up) {
		l.parents[up] = true
	}
	info, err := l.dir.Lstat(at)
	if err != nil {
		return differs("the file %.200q of a layer is missing", at)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.ErrUnsupported
	}
	if hides {
		if st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != 0 {
			return differs("the file %.200q of a layer is not hidden", at)
		}
		return nil
	}
	if err := compare(h, at, st); err != nil || h.Typeflag == tar.TypeLink {
		return err
	}
	return l.compareMore(h, at)
}

// capability is the attribute that gives a program rights of root.
const capability = "security.capability"

// compareMore compares where a link leads, and the rights that a program gets.
func (l *listing) compareMore(h *tar.Header, at string) error {
	switch h.Typeflag {
	case tar.TypeSymlink:
		if to, err := l.dir.Readlink(at); err != nil || to != h.Linkname {
			return differs("the link %.200q of a layer leads to %.200q", at, to)
		}
	case tar.TypeReg:
		f, err := l.dir.OpenFile(at, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return differs("the file %.200q of a layer cannot be read: %v", at, err)
		}
		defer f.Close()
		value := make([]byte, 256)
		n, err := unix.Fgetxattr(int(f.Fd()), capability, value)
		if err != nil && !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP) {
			return differs("the file %.200q of a layer cannot be read: %v", at, err)
		}
		if string(value[:max(n, 0)]) != h.PAXRecords["SCHILY.xattr."+capability] {
			return differs("the file %.200q of a layer has other capabilities", at)
		}
	}
	return nil
}

// compare compares an entry with the file that it has become.
func compare(h *tar.Header, at string, st *syscall.Stat_t) error {
	if h.Typeflag == tar.TypeLink {
		return nil // it is a file whose own entry came before
	}
	kinds := map[byte]uint32{
		tar.TypeReg: unix.S_IFREG, tar.TypeDir: unix.S_IFDIR, tar.TypeSymlink: unix.S_IFLNK, tar.TypeFifo: unix.S_IFIFO, tar.TypeChar: unix.S_IFCHR, tar.TypeBlock: unix.S_IFBLK,
	}
	kind, known := kinds[h.Typeflag]
	mode := uint32(h.Mode) & 0o7777
	switch {
	case !known || st.Mode&unix.S_IFMT != kind:
		return differs("the file %.200q of a layer is of another kind", at)
	case kind != unix.S_IFLNK && st.Mode&0o7777 != mode:
		return differs("the file %.200q of a layer has mode %o and not %o", at, st.Mode&0o7777, mode)
	case int(st.Uid) != h.Uid || int(st.Gid) != h.Gid:
		return differs("the file %.200q of a layer is of %d:%d and not of %d:%d", at, st.Uid, st.Gid, h.Uid, h.Gid)
	case kind == unix.S_IFREG && st.Size != h.Size:
		return differs("the file %.200q of a layer has %d bytes and not %d", at, st.Size, h.Size)
	case (kind == unix.S_IFCHR || kind == unix.S_IFBLK) && st.Rdev != unix.Mkdev(uint32(h.Devmajor), uint32(h.Devminor)):
		return differs("the file %.200q of a layer is another device", at)
	}
	return nil
}

// checkOthers finds what the archive does not have. Directories above its entries it need not have, and sockets are never in one.
func (l *listing) checkOthers() error {
	return fs.WalkDir(l.dir.FS(), ".", func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return differs("a layer cannot be read: %v", err)
		}
		if !l.seen[at] && !(e.IsDir() && l.parents[at]) && e.Type() != fs.ModeSocket {
			return differs("a layer has the file %.200q, which is not of it", at)
		}
		return nil
	})
}
