package slate

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	systemdunit "github.com/coreos/go-systemd/v22/unit"
)

// What belongs to a host is not all there when its first run begins: services of the image start one after the other, some
// only when they are first asked. So what a unit of the image opens or mounts later is no doubt. A unit is of the image
// when its files are those that were there when the baseline was recorded, and are unchanged. By its name, its place in
// the control groups and its files nobody but root can make something pass for it. A job with root's rights can: it starts
// a unit of the image that nobody had started, with `systemctl start`, which is allowed, or puts its own in the place of a
// program that such a unit runs, which nothing tells. A process that it writes into the control group of a unit is told
// from the unit's own by its parents and its birth.

// unit is what systemd says of a unit.
type unit struct {
	name string
	// fragment is its file and dropIns are those that add to it, as systemd has read them; "" for a unit without.
	fragment  string
	dropIns   []string
	transient bool
	// active is its ActiveState, and sub its SubState, of a kind of unit.
	active, sub string
	// began is when it last began to start, and ready when it last had started, since the boot; 0 if never in this boot.
	began, ready time.Duration
	// mainPID is its main process, and controlPID one that systemd has started to start, reload or stop it; 0 for none.
	mainPID, controlPID int
}

// socketUnit is what systemd says of a socket unit.
type socketUnit struct {
	unit
	listens []listener
}

// manager is systemd, as far as it is asked for units by name.
type manager interface {
	unit(ctx context.Context, name string) (unit, error)
	// sockets are the socket units that are loaded and listen at addresses of IP.
	sockets(ctx context.Context) ([]socketUnit, error)
	// mains are the names of the services that run, by their main processes.
	mains(ctx context.Context) (map[int]string, error)
}

// unitDirs are where the unit files of an image are, and those that it makes at boot.
var unitDirs = []string{"/etc/systemd/system", "/usr/lib/systemd/system", "/usr/local/lib/systemd/system", "/run/systemd/system"}

// generatedDirs are those of the generators. All in them is deleted and made anew with each reload of systemd.
var generatedDirs = []string{"/run/systemd/generator", "/run/systemd/generator.early", "/run/systemd/generator.late"}

// longestName is that of a unit, in bytes: UNIT_NAME_MAX of systemd.
const longestName = 255

// image tells what belongs to units of the image.
type image struct {
	plan    Plan
	manager manager
	// files are the unit files that are as they were at the baseline.
	files func() (prints, error)
}

// image looks at the unit files when it is first asked.
func (p Plan) image(m manager, base baseline) image {
	return image{plan: p, manager: m, files: sync.OnceValues(func() (prints, error) {
		var now baseline
		var err error
		if now.Starting, err = p.starters(); err == nil {
			now.Generated, err = p.generated()
		}
		return unchanged(now, base), err
	})}
}

// unchanged are the fingerprints of unit files that are the same as before.
func unchanged(now, base baseline) prints {
	same := prints{}
	for _, both := range [][2]prints{{now.Starting, base.Starting}, {now.Generated, base.Generated}} {
		for path, print := range both[0] {
			if both[1][path] == print {
				same[path] = print
			}
		}
	}
	return same
}

// covers reports whether a unit file was there at the baseline, and is unchanged. A link is not taken: what it leads to
// may be anywhere.
func (p Plan) covers(files prints, path string) bool {
	if rest, ok := strings.CutPrefix(path, "/lib/systemd/"); ok { // what Debian 12 calls it; /lib is a link there
		path = "/usr/lib/systemd/" + rest
	}
	known := slices.ContainsFunc(slices.Concat(unitDirs, generatedDirs), func(dir string) bool { return below(path, dir) })
	return known && regular(files[p.at(path)])
}

// passes reports whether a unit is of the image and its listeners and mounts belong to the host. Those of a user's manager
// and of docker belong to whoever uses them.
func (p Plan) passes(u unit, files prints) bool {
	return !strings.HasPrefix(u.name, "user@") && u.name != dockerUnit && p.hasFiles(u, files)
}

// hasFiles reports whether a unit is of the image.
func (p Plan) hasFiles(u unit, files prints) bool {
	if u.transient || matches(slices.Concat(p.Units, p.OwnUnits), u.name) {
		return false
	}
	for _, path := range append([]string{u.fragment}, u.dropIns...) {
		if !p.covers(files, path) {
			return false
		}
	}
	return true
}

// holder is a process, mostly one that has a socket open.
type holder struct {
	pid int
	// name is its own choice.
	name string
	// unit is by its control group: "" for none.
	unit string
	// login is the slice of the user in whose login it is, by its control group: "" for none.
	login string
	// line are its pid, its parent's, and so on.
	line []int
	// born is when it was started, since the boot.
	born time.Duration
	// kernel is said of a thread of the kernel's own, and dead of what has ended.
	kernel, dead bool
}

// bornWithin is how exactly the kernel tells when a process was started: to a hundredth of a second.
const bornWithin = 10 * time.Millisecond

// notedWithin is how late systemd may note that a unit began to start: it does so after the first process was started,
// which on a busy host has started others meanwhile.
const notedWithin = time.Second

// owns reports whether a process in the unit's control group has been started by the unit: it comes from its main process or
// from one by which systemd starts, reloads or stops it, or was born while the unit was starting, as a daemon is by a script.
// Root can write any process into any control group.
func (u unit) owns(h holder) bool {
	if u.name != h.unit {
		return false
	}
	comes := func(pid int) bool { return pid > 1 && slices.Contains(h.line, pid) }
	return comes(u.mainPID) || comes(u.controlPID) || u.bore(h)
}

// bore reports whether a process was born while the unit was starting. One that waits for RestartSec= to start again is said to be
// activating, but starts nothing. Versions of systemd call it auto-restart or auto-restart-queued.
func (u unit) bore(h holder) bool {
	starting := u.active == "activating" && !strings.HasPrefix(u.sub, "auto-restart")
	return u.began > 0 && h.born >= u.began-notedWithin && (starting || h.born <= u.ready+bornWithin)
}

// listens reports whether a listener belongs to units of the image, by those who hold it.
func (i image) listens(ctx context.Context, l listener, holders []holder) (bool, error) {
	files, err := i.files()
	if err != nil {
		return false, err
	}
	for _, h := range holders {
		var ok bool
		if h.pid == 1 {
			ok, err = i.activates(ctx, l, files)
		} else if strings.HasSuffix(h.unit, ".service") {
			var u unit
			u, err = i.manager.unit(ctx, h.unit)
			ok = u.owns(h) && i.plan.passes(u, files)
		}
		if err != nil || !ok {
			return false, err
		}
	}
	return len(holders) > 0, nil
}

// activates reports whether systemd itself listens for a socket unit of the image.
func (i image) activates(ctx context.Context, l listener, files prints) (bool, error) {
	sockets, err := i.manager.sockets(ctx)
	if err != nil {
		return false, err
	}
	l.inode = 0
	return slices.ContainsFunc(sockets, func(s socketUnit) bool {
		return slices.Contains(s.listens, l) && i.plan.passes(s.unit, files)
	}), nil
}

// mounts reports whether a mount is at the place of a mount unit of the image. That it is this unit's, and not one that
// root has put in its place, nothing tells.
func (i image) mounts(ctx context.Context, m mount) (bool, error) {
	kind := ".mount"
	if m.place().automount {
		kind = ".automount"
	}
	name := systemdunit.UnitNamePathEscape(m.Point) + kind
	if len(name) > longestName { // systemd calls it something else or nothing, and would not know whom it is asked for
		return false, nil
	}
	u, err := i.manager.unit(ctx, name)
	if err != nil {
		return false, err
	}
	files, err := i.files()
	return err == nil && i.plan.passes(u, files), err
}
