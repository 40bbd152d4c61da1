package reset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/remuda-ci/remuda/internal/host/reset/fingerprint"
	"github.com/remuda-ci/remuda/internal/tree"
)

// maxFindings is how many findings an error lists. More of them would not say more, and the error goes into a record.
const maxFindings = 12

// Findings is the error of a host on which the next run might find something of the last.
type Findings struct {
	// All are sentences, at most maxFindings.
	All []string
	// More is how many further findings there are.
	More int
}

func (d *Findings) Error() string {
	text := "check host: " + strings.Join(d.All, "; ")
	if d.More > 0 {
		text += fmt.Sprintf("; and %d more", d.More)
	}
	return text
}

func (d *Findings) add(format string, args ...any) {
	if len(d.All) == maxFindings {
		d.More++
		return
	}
	d.All = append(d.All, fmt.Sprintf(format, args...))
}

// errEnough ends a search once there are more findings than are listed.
var errEnough = errors.New("enough")

// addMore adds one of possibly very many findings. It returns errEnough once there are more than are listed.
func (d *Findings) addMore(format string, args ...any) error {
	if d.add(format, args...); d.More > 0 {
		return errEnough
	}
	return nil
}

// count is how many findings there are.
func (d *Findings) count() int { return len(d.All) + d.More }

// join adds the findings of another.
func (d *Findings) join(other Findings) {
	for _, sentence := range other.All {
		d.add("%s", sentence)
	}
	d.More += other.More
}

// addErr adds an error as a finding, and reports whether it was one: what could not be checked may be wrong.
func (d *Findings) addErr(err error) bool {
	wrong := err != nil && !errors.Is(err, errEnough)
	if wrong {
		d.add("%v", err)
	}
	return wrong
}

// Verify checks a host as if something else had reset it. Its error is a *Findings with a sentence for each thing that is
// not as it should be. Without findings it records what runs on the host, which the next verification then knows.
func Verify(ctx context.Context, p Plan) error {
	d := &Findings{}
	if d.addErr(p.Validate()) {
		return d
	}
	base, err := p.readBaseline()
	if d.addErr(err) {
		return d
	}
	conn, err := connect(ctx)
	if d.addErr(err) {
		return d
	}
	defer conn.Close()
	var known []procID
	// They run at once, since most of their time is spent in the kernel. Their findings are reported in this order.
	checks := []struct {
		name string
		do   func(d *Findings)
	}{
		{"processes and units", func(d *Findings) { p.checkRunning(ctx, d, conn) }},
		{"containers, jobs, ipc, keys and files elsewhere", func(d *Findings) { p.checkResources(ctx, d, systemd{conn}) }},
		{"directories", p.checkDirectories},
		{"temporary directories", func(d *Findings) { p.checkTemporary(ctx, d, conn, base) }},
		{"mounts, listeners, startup and own files", func(d *Findings) { p.checkChanges(ctx, d, systemd{conn}, base) }},
		{"unaccounted processes", func(d *Findings) { known = p.checkUnaccounted(ctx, d, systemd{conn}, base) }},
		{"disk space", p.checkDiskSpace},
	}
	parts := make([]Findings, len(checks))
	var wait sync.WaitGroup
	for i, check := range checks {
		wait.Go(func() { check.do(&parts[i]) })
	}
	wait.Wait()
	for i, part := range parts {
		d.join(part)
		if p.Statement != nil {
			p.Statement.Check(checks[i].name, part.count())
		}
	}
	base.Processes = known
	if len(d.All) > 0 || d.addErr(p.write(base)) {
		return d
	}
	return nil
}

func (p Plan) checkRunning(ctx context.Context, d *Findings, conn *dbus.Conn) {
	running, err := p.userProcesses()
	d.addErr(err)
	for _, one := range running {
		d.add("process %d (%q) of user %s still runs: end it", one.pid, one.name, p.User)
	}
	left, err := p.findLeftoverUnits(ctx, conn)
	d.addErr(err)
	for _, name := range left.names() {
		d.add("unit %s is still there: stop it", name)
	}
}

func (p Plan) checkResources(ctx context.Context, d *Findings, m manager) {
	contained, err := p.dockerObjects(ctx, m)
	d.addErr(err)
	for i, names := range contained {
		for _, name := range names {
			d.add("docker has a %s %s: remove it, or make it in each run", dockerLists[i].kind, name)
		}
	}
	p.checkImages(ctx, d, m)
	jobs, err := p.scheduledJobs()
	d.addErr(err)
	for _, path := range jobs {
		d.add("%q would start something of user %s: delete it", path, p.User)
	}
	for _, kind := range ipcKinds {
		ids, err := p.ipcObjects(kind)
		d.addErr(err)
		for _, id := range ids {
			d.add("user %s has IPC %s %d: remove it with ipcrm", p.User, kind.name, id)
		}
	}
	p.checkKeys(d)
	p.checkLeftovers(d)
}

// checkChanges compares the host with its baseline.
func (p Plan) checkChanges(ctx context.Context, d *Findings, m manager, base baseline) {
	now, err := p.observe()
	if d.addErr(err) {
		return
	}
	units := imageUnits{plan: p, manager: m, files: func() (fingerprint.Set, error) { return unchanged(now, base), nil }}
	foreign := p.foreignMounts(now.Mounts, base.Mounts, func(one mount) bool {
		claimed, err := units.accountsForMount(ctx, one)
		d.addErr(err)
		return claimed
	})
	for _, one := range foreign {
		d.add("%s %q is mounted at %q and was not before: unmount it, or mount it before the host is prepared", one.Kind, one.Source, one.Point)
	}
	p.checkListeners(ctx, d, units, newListeners(now.Listeners, base.Listeners))
	for _, sentence := range fingerprint.Differences(now.Startup, base.Startup) {
		d.add("%s, and starts by itself or decides what does: undo it, or do it before the host is prepared", sentence)
	}
	for _, sentence := range fingerprint.Differences(now.Own, base.Own) {
		d.add("%s, and is ours: no run may change it", sentence)
	}
}

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
