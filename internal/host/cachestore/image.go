package cachestore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// image is what the image of the host has for a cache of tools. It is the lowest layer of the views of overlayfs, below all that runs have added.
// Nothing in it is copied, counted, listed or committed, and nothing changes it: only root may write there.
type image struct {
	// Dir is its directory; empty: there is none, or it cannot be used.
	Dir string `json:"dir,omitempty"`
	// Identity changes with the versions of tools that are in it. A cache that was committed on another image is not used: a version of a tool could be
	// in both, and a job would see a mixture of the two.
	Identity string `json:"identity,omitempty"`
	// Above are the directories TOOL and TOOL/VERSION. In a view they belong to the user of jobs, who adds tools and versions there.
	Above []string `json:"-"`
}

// mostImageDir bounds what attaching reads of the image, in names down to ARCH and its marker. GitHub's own image for Ubuntu has less than a hundred.
const mostImageDir = 10_000

// readImage looks at the tools of the image, down to TOOL/VERSION/ARCH. A directory that is not there is an empty image. One that is unsound is an error.
func readImage(dir string) (image, error) {
	if dir == "" {
		return image{}, nil
	}
	var top unix.Stat_t
	switch err := unix.Lstat(dir, &top); {
	case errors.Is(err, fs.ErrNotExist):
		return image{}, nil
	case err != nil:
		return image{}, &fs.PathError{Op: "look at", Path: dir, Err: err}
	case top.Mode&unix.S_IFMT != unix.S_IFDIR:
		return image{}, fmt.Errorf("%s is no directory", dir)
	}
	r := imageReader{dir: dir, sum: sha256.New()}
	if err := r.look(entry{path: ".", stat: top}); err != nil {
		return image{}, err
	}
	w := walker{do: r.look}
	if err := w.walk(dir); err != nil {
		return image{}, err
	}
	return image{Dir: dir, Identity: hex.EncodeToString(r.sum.Sum(nil)), Above: r.above}, nil
}

type imageReader struct {
	dir   string
	sum   hash.Hash
	names int
	above []string
}

// look refuses what a job could change, since the next run of another repository would see it.
func (r *imageReader) look(e entry) error {
	if r.names++; r.names > mostImageDir {
		return fmt.Errorf("%s has more than %d tools", r.dir, mostImageDir)
	}
	kind := e.kind()
	if int(e.stat.Uid) != os.Geteuid() || kind != unix.S_IFLNK && e.stat.Mode&0o022 != 0 {
		return fmt.Errorf("%q in %s can be written by others than root: change its owner and mode in the image", shorten(e.path), r.dir)
	}
	fmt.Fprintf(r.sum, "%q %o %d\n", e.path, kind, e.stat.Mtim.Nano())
	switch depth := strings.Count(e.path, "/") + 1; {
	case e.path == ".":
	case kind == unix.S_IFDIR && depth < toolDepth:
		r.above = append(r.above, e.path)
	case kind == unix.S_IFDIR:
		return errSkipped
	}
	return nil
}

// has reports whether the image has something at a path.
func (i image) has(path string) bool {
	if i.Dir == "" {
		return false
	}
	_, err := os.Lstat(filepath.Join(i.Dir, path))
	return !errors.Is(err, fs.ErrNotExist)
}
