package reset

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/remuda-ci/remuda/internal/host/tree"
)

func (p Plan) checkDirectories(d *Findings) {
	for _, dir := range p.Renew {
		p.checkDir(d, dir)
		p.checkEmpty(d, dir.Path, nil)
	}
	for _, m := range p.Mirrors {
		compareTrees(d, comparison{from: m.From, to: m.To, owner: m.Owner, linked: true})
	}
	p.checkDir(d, p.Home)
	compareTrees(d, comparison{from: p.Skeleton, to: p.Home.Path, owner: p.Home.Owner})
}

// checkDir checks that dir is a directory, not a link to one, with the right owner and mode.
func (p Plan) checkDir(d *Findings, dir Dir) {
	info, err := os.Lstat(dir.Path)
	if d.addErr(err) {
		return
	}
	owner := ownerOf(info)
	if info.Mode() != dir.Mode|fs.ModeDir || owner != dir.Owner {
		d.add("%s is %s of %d:%d, not %s of %d:%d: renew it",
			dir.Path, info.Mode(), owner.UID, owner.GID, dir.Mode|fs.ModeDir, dir.Owner.UID, dir.Owner.GID)
	}
}

func ownerOf(info fs.FileInfo) tree.Owner {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return tree.Owner{UID: -1, GID: -1}
	}
	return tree.Owner{UID: int(st.Uid), GID: int(st.Gid)}
}

func (p Plan) checkEmpty(d *Findings, dir string, kept []string) {
	d.addErr(eachEntry(dir, func(e fs.DirEntry) error {
		if slices.Contains(kept, e.Name()) {
			return nil
		}
		return d.addMore("%q is left: delete it", filepath.Join(dir, e.Name()))
	}))
}

func (p Plan) checkTemporary(ctx context.Context, d *Findings, conn *dbus.Conn, base baseline) {
	for _, dir := range p.Empty {
		p.checkDir(d, dir)
		kept, err := p.keptNames(ctx, conn, dir.Path, base.Sockets)
		if d.addErr(err) {
			continue
		}
		p.checkEmpty(d, dir.Path, kept)
		for _, name := range kept {
			if path := filepath.Join(dir.Path, name); slices.Contains(displayDirs, name) {
				p.checkEmpty(d, path, unchangedIn(path, base.Sockets))
			}
		}
	}
}

// comparison compares a copy with its original.
type comparison struct {
	from, to string
	owner    tree.Owner
	// linked says that files are hard links to the original, or have its owner. Otherwise they have the owner of the copy.
	linked bool
}

// compareTrees adds a finding for each difference between a copy and its original. The mode of the top directory is not
// compared.
func compareTrees(d *Findings, c comparison) {
	want, err := infos(c.from)
	if d.addErr(err) {
		return
	}
	have, err := infos(c.to)
	if d.addErr(err) {
		return
	}
	for name, w := range want {
		h, ok := have[name]
		if !ok {
			d.add("%q is missing: copy it from %q", filepath.Join(c.to, name), c.from)
			continue
		}
		if what := c.differ(name, w, h); what != "" {
			d.add("%q has another %s than in %q: renew it", filepath.Join(c.to, name), what, c.from)
		}
	}
	for name := range have {
		if _, ok := want[name]; !ok {
			d.add("%q is left: delete it", filepath.Join(c.to, name))
		}
	}
}

// infos returns root and all files below it, by their path from there.
func infos(root string) (map[string]fs.FileInfo, error) {
	all := map[string]fs.FileInfo{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		all[path[len(root):]] = info
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", root, err)
	}
	return all, nil
}

// differ names the first property in which two files differ; "" for none.
func (c comparison) differ(name string, want, have fs.FileInfo) string {
	if c.linked && !want.IsDir() && os.SameFile(want, have) {
		return ""
	}
	owner := c.owner
	if c.linked && !want.IsDir() {
		owner = ownerOf(want)
	}
	switch {
	case want.Mode().Type() != have.Mode().Type():
		return "kind"
	case ownerOf(have) != owner:
		return "owner"
	case want.Mode() != have.Mode() && name != "":
		return "mode"
	case want.Mode().IsRegular() && (want.Size() != have.Size() || !want.ModTime().Equal(have.ModTime())):
		return "content"
	case want.Mode().Type() == fs.ModeSymlink:
		wanted, err1 := os.Readlink(filepath.Join(c.from, name))
		there, err2 := os.Readlink(filepath.Join(c.to, name))
		if err1 != nil || err2 != nil || wanted != there {
			return "target"
		}
	}
	return ""
}
