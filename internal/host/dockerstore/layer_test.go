package dockerstore

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// splitLayer lays out a layer as docker does: its list, and its files in a directory. It returns the digest and the chain id of the only layer of an image.
func splitLayer(t *testing.T, root string, headers []tar.Header, content string) string {
	t.Helper()
	var archive, list bytes.Buffer
	packed := gzip.NewWriter(&list)
	out, w, written := json.NewEncoder(packed), tar.NewWriter(&archive), 0
	segment := func() {
		check(t, out.Encode(splitEntry{Type: 2, Payload: archive.Bytes()[written:]}))
		written = archive.Len()
	}
	for _, h := range headers {
		if h.Typeflag != tar.TypeXGlobalHeader { // which has none
			h.Uid, h.Gid = os.Getuid(), os.Getgid()
		}
		if h.Typeflag == tar.TypeReg && path.Base(h.Name) != opaque {
			h.Size = int64(len(content))
		}
		check(t, w.WriteHeader(&h))
		segment()
		check(t, out.Encode(splitEntry{Type: 1, NameRaw: []byte(h.Name), Size: h.Size}))
		if h.Size > 0 {
			_, err := io.WriteString(w, content)
			check(t, err)
			written = archive.Len()
			check(t, w.Flush())
		}
	}
	check(t, w.Close())
	segment()
	check(t, packed.Close())
	digest := digestOf(archive.Bytes())
	meta := disk{root}.layerOf(digest)
	check(t, os.MkdirAll(meta, 0o755))
	check(t, os.WriteFile(filepath.Join(meta, "tar-split.json.gz"), list.Bytes(), 0o644))
	check(t, os.WriteFile(filepath.Join(meta, "cache-id"), []byte("layer1"), 0o644))
	check(t, os.MkdirAll(filepath.Join(root, "overlay2/layer1/diff"), 0o755))
	return digest
}

// aLayer has one of most kinds of files.
func aLayer(t *testing.T) (root, diff, digest string) {
	t.Helper()
	root = t.TempDir()
	digest = splitLayer(t, root, []tar.Header{
		{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "a commit"}}, // of git archive
		{Typeflag: tar.TypeDir, Name: "./", Mode: 0o700},
		{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: "etc/hosts", Mode: 0o644},
		{Typeflag: tar.TypeReg, Name: "./usr/bin/su", Mode: 0o4755},
		{Typeflag: tar.TypeLink, Name: "usr/bin/su2", Linkname: "usr/bin/su"},
		{Typeflag: tar.TypeSymlink, Name: "bin", Linkname: "usr/bin", Mode: 0o777},
		{Typeflag: tar.TypeFifo, Name: "pipe", Mode: 0o600},
		{Typeflag: tar.TypeReg, Name: "etc/" + opaque},
		{Typeflag: tar.TypeReg, Name: "odd\nname\xff", Mode: 0o600},
	}, "content")
	diff = filepath.Join(root, "overlay2/layer1/diff")
	for _, dir := range []string{"etc", "usr/bin"} {
		check(t, os.MkdirAll(filepath.Join(diff, dir), 0o755))
	}
	for name, mode := range map[string]os.FileMode{"etc/hosts": 0o644, "usr/bin/su": 0o755 | os.ModeSetuid, "odd\nname\xff": 0o600, "etc/" + opaque: 0o600} {
		check(t, os.WriteFile(filepath.Join(diff, name), []byte("content"), 0o600))
		check(t, os.Chmod(filepath.Join(diff, name), mode))
	}
	check(t, os.Link(filepath.Join(diff, "usr/bin/su"), filepath.Join(diff, "usr/bin/su2")))
	check(t, os.Symlink("usr/bin", filepath.Join(diff, "bin")))
	check(t, unix.Mkfifo(filepath.Join(diff, "pipe"), 0o600))
	return root, diff, digest
}

// TestCheckLayer: whatever has changed in the files of a layer is found.
func TestCheckLayer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(diff string) error
		want   string // part of the error; empty: none
	}{
		"as it was":                {func(string) error { return nil }, "which is not of it"}, // the mark of an opaque directory is no file of overlay2
		"sound":                    {func(diff string) error { return nil }, ""},
		"a socket":                 {func(diff string) error { return unix.Mknod(filepath.Join(diff, "s"), unix.S_IFSOCK|0o600, 0) }, ""},
		"another byte":             {func(diff string) error { return os.WriteFile(filepath.Join(diff, "etc/hosts"), []byte("Content"), 0) }, "another digest"},
		"a byte more":              {func(diff string) error { return os.WriteFile(filepath.Join(diff, "etc/hosts"), []byte("content2"), 0) }, "has 8 bytes and not 7"},
		"a byte less":              {func(diff string) error { return os.WriteFile(filepath.Join(diff, "etc/hosts"), []byte("conten"), 0) }, "7"},
		"another mode":             {func(diff string) error { return os.Chmod(filepath.Join(diff, "etc/hosts"), 0o755|os.ModeSetuid) }, "has mode 4755 and not 644"},
		"a directory for all":      {func(diff string) error { return os.Chmod(filepath.Join(diff, "etc"), 0o777) }, "has mode 777"},
		"a file more":              {func(diff string) error { return os.WriteFile(filepath.Join(diff, "etc/evil"), nil, 0o644) }, `"etc/evil", which is not of it`},
		"a directory more":         {func(diff string) error { return os.Mkdir(filepath.Join(diff, "x"), 0o755) }, `"x", which is not of it`},
		"a file less":              {func(diff string) error { return os.Remove(filepath.Join(diff, "etc/hosts")) }, "etc/hosts"},
		"a link less":              {func(diff string) error { return os.Remove(filepath.Join(diff, "bin")) }, `"bin" of a layer is missing`},
		"a link to elsewhere":      {func(diff string) error { return replace(diff, "bin", "/tmp") }, `leads to "/tmp"`},
		"a link for a file":        {func(diff string) error { return replace(diff, "etc/hosts", "/etc/hosts") }, "etc/hosts"},
		"a link for a directory":   {func(diff string) error { return replace(diff, "etc", "/etc") }, "etc"},
		"a pipe that hangs":        {func(diff string) error { return hang(diff, "etc/hosts") }, "etc/hosts"},
		"a layer that has nothing": {func(diff string) error { return os.RemoveAll(diff) }, "no files"},
	} {
		root, diff, digest := aLayer(t)
		if name != "as it was" {
			check(t, os.Remove(filepath.Join(diff, "etc", opaque)))
		}
		check(t, tt.change(diff))
		err := disk{root}.checkLayer(t.Context(), digest, "layer1", digest)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want one with %q", name, err, tt.want)
		}
	}
}

func replace(diff, name, to string) error {
	return errors.Join(os.RemoveAll(filepath.Join(diff, name)), os.Symlink(to, filepath.Join(diff, name)))
}

func hang(diff, name string) error {
	return errors.Join(os.Remove(filepath.Join(diff, name)), unix.Mkfifo(filepath.Join(diff, name), 0o644))
}

// TestCheckLayerOfAnother: a layer with another digest, and one whose list is no list.
func TestCheckLayerOfAnother(t *testing.T) {
	t.Parallel()
	root, diff, digest := aLayer(t)
	check(t, os.Remove(filepath.Join(diff, "etc", opaque)))
	var differ *differsError
	if err := (disk{root}).checkLayer(t.Context(), digest, "layer1", digestOf(nil)); !errors.As(err, &differ) {
		t.Errorf("another digest: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (disk{root}).checkLayer(ctx, digest, "layer1", digest); !errors.Is(err, context.Canceled) {
		t.Errorf("cut short: %v", err)
	}
	for _, text := range []string{"", "x", strings.Repeat("\x00", 100)} {
		check(t, os.WriteFile(filepath.Join(disk{root}.layerOf(digest), "tar-split.json.gz"), []byte(text), 0o644))
		if err := (disk{root}).checkLayer(t.Context(), digest, "layer1", digest); !errors.As(err, &differ) {
			t.Errorf("the list %q: %v", text, err)
		}
	}
	for _, id := range []string{"", "../..", "a/b", "."} {
		check(t, os.WriteFile(filepath.Join(disk{root}.layerOf(digest), "cache-id"), []byte(id), 0o644))
		if _, err := (disk{root}).directory(digest); err == nil {
			t.Errorf("the directory %q", id)
		}
	}
	if _, err := (disk{root}).directory("sha256:../../x"); err == nil {
		t.Error("a chain that is no digest")
	}
}

func TestChains(t *testing.T) {
	t.Parallel()
	a, b := digestOf([]byte("a")), digestOf([]byte("b"))
	if got := chains([]string{a, b}); !slices.Equal(got, []string{a, digestOf([]byte(a + " " + b))}) {
		t.Errorf("chains %q", got)
	}
}

// FuzzLayerList: no list makes a layer of other files, and none is waited for.
func FuzzLayerList(f *testing.F) {
	f.Add([]byte(`{"type":2,"payload":"AAAA"}{"type":1,"name":"x","size":7}`))
	f.Add([]byte(`{"type":1,"name":"../../etc/passwd","size":1}`))
	f.Add([]byte(`{"type":1,"name_raw":"/w==","size":-1}`))
	f.Fuzz(func(t *testing.T, lines []byte) {
		dir, err := os.OpenRoot(t.TempDir())
		check(t, err)
		defer dir.Close()
		var list bytes.Buffer
		packed := gzip.NewWriter(&list)
		_, err = packed.Write(lines)
		check(t, errors.Join(err, packed.Close()))
		if err := checkArchive(t.Context(), &list, dir, digestOf([]byte("another"))); err == nil {
			t.Errorf("%q is another layer", lines)
		}
	})
}
