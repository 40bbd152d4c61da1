package slate

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/dbus"
)

// maxDoubts is how many doubts an error tells of; more say nothing more, and the error goes into a record.
const maxDoubts = 12

// Doubts is the error of a host of which it is not sure that the next run finds nothing of the last.
type Doubts struct {
	// All are sentences; there are at most maxDoubts.
	All []string
	// More is how many there are besides.
	More int
}

func (d *Doubts) Error() string {
	text := "check host: " + strings.Join(d.All, "; ")
	if d.More > 0 {
		text += fmt.Sprintf("; and %d more", d.More)
	}
	return text
}

func (d *Doubts) add(format string, args ...any) {
	if len(d.All) == maxDoubts {
		d.More++
		return
	}
	d.All = append(d.All, fmt.Sprintf(format, args...))
}

// join adds the doubts of another.
func (d *Doubts) join(other Doubts) {
	for _, sentence := range other.All {
		d.add("%s", sentence)
	}
	d.More += other.More
}

// found adds a doubt for an error, if it is one: what could not be looked at is in doubt.
func (d *Doubts) found(err error) bool {
	if err != nil {
		d.add("%v", err)
	}
	return err != nil
}

// Check looks at a host as if somebody else had cleaned it. Its error is a *Doubts, with a sentence for each thing that is
// not as it should be. What runs on a host without doubts is known to the next check.
func Check(ctx context.Context, p Plan) error {
	d := &Doubts{}
	if d.found(p.Validate()) {
		return d
	}
	base, err := p.baseline()
	if d.found(err) {
		return d
	}
	conn, err := connect(ctx)
	if d.found(err) {
		return d
	}
	defer conn.Close()
	var known []birth
	// At once, since most of it is to wait for the kernel; told of in this order.
	looks := []func(d *Doubts){
		func(d *Doubts) { p.checkRunning(ctx, d, conn) },
		func(d *Doubts) { p.checkLeftovers(ctx, d, systemd{conn}) },
		p.checkDirectories,
		func(d *Doubts) { p.checkTemporary(ctx, d, conn, base) },
		func(d *Doubts) { p.checkChanges(ctx, d, systemd{conn}, base) },
		func(d *Doubts) { known = p.checkStrange(ctx, d, systemd{conn}, base) },
		p.checkRoom,
	}
	parts := make([]Doubts, len(looks))
	var wait sync.WaitGroup
	for i, look := range looks {
		wait.Go(func() { look(&parts[i]) })
	}
	wait.Wait()
	for _, part := range parts {
		d.join(part)
	}
	if len(d.All) > 0 || d.found(p.remember(base, known)) {
		return d
	}
	return nil
}

func (p Plan) checkRunning(ctx context.Context, d *Doubts, conn *dbus.Conn) {
	found, err := p.processes()
	d.found(err)
	for _, one := range found {
		d.add("process %d (%q) of user %s still runs: end it", one.pid, one.name, p.User)
	}
	left, err := p.remains(ctx, conn)
	d.found(err)
	for _, name := range left.names() {
		d.add("unit %s is still there: stop it", name)
	}
}

func (p Plan) checkLeftovers(ctx context.Context, d *Doubts, m manager) {
	contained, err := p.contained(ctx, m)
	d.found(err)
	for i, names := range contained {
		for _, name := range names {
			d.add("docker has a %s %s: remove it, or make it in each run", dockerLists[i].kind, name)
		}
	}
	jobs, err := p.jobs()
	d.found(err)
	for _, path := range jobs {
		d.add("%q would start something of user %s: delete it", path, p.User)
	}
	for _, kind := range ipcKinds {
		ids, err := p.shared(kind)
		d.found(err)
		for _, id := range ids {
			d.add("user %s has IPC %s %d: remove it with ipcrm", p.User, kind.name, id)
		}
	}
	p.checkKeys(d)
	p.checkStrays(d)
}

// checkChanges compares the host with its baseline.
func (p Plan) checkChanges(ctx context.Context, d *Doubts, m manager, base baseline) {
	now, err := p.look()
	if d.found(err) {
		return
	}
	units := image{plan: p, manager: m, files: func() (prints, error) { return unchanged(now, base), nil }}
	foreign := p.foreign(now.Mounts, base.Mounts, func(one mount) bool {
		claimed, err := units.mounts(ctx, one)
		d.found(err)
		return claimed
	})
	for _, one := range foreign {
		d.add("%s %q is mounted at %q and was not before: unmount it, or mount it before the host is prepared", one.Kind, one.Source, one.Point)
	}
	p.checkListeners(ctx, d, units, newListeners(now.Listeners, base.Listeners))
	for _, sentence := range differences(now.Starting, base.Starting) {
		d.add("%s, and starts by itself or decides what does: undo it, or do it before the host is prepared", sentence)
	}
	for _, sentence := range differences(now.Own, base.Own) {
		d.add("%s, and is ours: no run may change it", sentence)
	}
}

// added are the names that were not there before.
func added(now, base []string) []string {
	known := map[string]bool{}
	for _, name := range base {
		known[name] = true
	}
	var added []string
	for _, name := range now {
		if !known[name] {
			added = append(added, name)
		}
	}
	return added
}

func (p Plan) checkRoom(d *Doubts) {
	for _, path := range p.places() {
		r, err := roomAt(path)
		if d.found(err) {
			continue
		}
		if r.bytes < p.MinimumFree {
			d.add("%d MiB are free for %s, %d are needed: take a larger disk, or ask for less", r.bytes>>20, path, p.MinimumFree>>20)
		}
		if r.totalFiles > 0 && r.files < p.MinimumFreeInodes {
			d.add("%d more files fit on the disk of %s, %d are needed: make its file system with more inodes, or ask for less",
				r.files, path, p.MinimumFreeInodes)
		}
	}
}
