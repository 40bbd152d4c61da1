package reset

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	systemdunit "github.com/coreos/go-systemd/v22/unit"

	"github.com/remuda-ci/remuda/internal/host/reset/fingerprint"
)

// Not everything that belongs to a host is there when its first run begins: services of the image start one after the
// other, some only on first use. So what a unit of the image opens or mounts later is not a finding. A unit is of the image
// if its files were there when the baseline was recorded and are unchanged.
//
// Only root can make something look like a unit of the image, by its name, its control group and its files. A job with
// root's rights can: it may start a unit of the image that was not running, with `systemctl start`, which is allowed, or
// replace a program that such a unit runs, which is not detected. A process that it moves into the control group of a unit
// is recognized by its ancestors and its start time.

// unit is what systemd says of a unit.
type unit struct {
	name string
	// fragment is its unit file and dropIns are the files that add to it, as systemd has read them; "" for a unit without.
	fragment  string
	dropIns   []string
	transient bool
	// active is its ActiveState, and sub its SubState, whose values depend on the type of unit.
	active, sub string
	// began is when it last began to start, and ready when that was done, since the boot; 0 if never in this boot.
	began, ready time.Duration
	// mainPID is its main process, and controlPID a process by which systemd starts, reloads or stops it; 0 for none.
	mainPID, controlPID int
}

// socketUnit is what systemd says of a socket unit.
type socketUnit struct {
	unit
	listeners []listener
}

// manager is the part of systemd that this package asks.
type manager interface {
	unit(ctx context.Context, name string) (unit, error)
	// sockets returns the loaded socket units that listen at IP addresses.
	sockets(ctx context.Context) ([]socketUnit, error)
	// mainPIDs returns the names of the running services, by their main processes.
	mainPIDs(ctx context.Context) (map[int]string, error)
}

// unitDirs are where the unit files of an image are, also those that it makes at boot.
var unitDirs = []string{"/etc/systemd/system", "/usr/lib/systemd/system", "/usr/local/lib/systemd/system", "/run/systemd/system"}

// generatedDirs are those of the generators. Each reload of systemd deletes all in them and makes it again.
var generatedDirs = []string{"/run/systemd/generator", "/run/systemd/generator.early", "/run/systemd/generator.late"}

// unitNameMax is the length of the longest name of a unit, in bytes: UNIT_NAME_MAX of systemd.
const unitNameMax = 255

// imageUnits decides what belongs to units of the image.
type imageUnits struct {
	plan    Plan
	manager manager
	// files returns the fingerprints of the unit files that are as they were at the baseline.
	files func() (fingerprint.Set, error)
}

// imageUnits returns one that reads the unit files on first use.
func (p Plan) imageUnits(m manager, base baseline) imageUnits {
	return imageUnits{plan: p, manager: m, files: sync.OnceValues(func() (fingerprint.Set, error) {
		var now baseline
		var err error
		if now.Startup, err = p.startupFingerprints(); err == nil {
			now.Generated, err = p.generatedFingerprints()
		}
		return unchanged(now, base), err
	})}
}

// unchanged returns the fingerprints of unit files that are the same as before.
func unchanged(now, base baseline) fingerprint.Set {
	same := fingerprint.Set{}
	for _, both := range [][2]fingerprint.Set{{now.Startup, base.Startup}, {now.Generated, base.Generated}} {
		for path, print := range both[0] {
			if both[1][path] == print {
				same[path] = print
			}
		}
	}
	return same
}

// isUnchangedUnitFile reports whether a unit file was there at the baseline and is unchanged. A link does not count: its
// target may be anywhere.
func (p Plan) isUnchangedUnitFile(files fingerprint.Set, path string) bool {
	if rest, ok := strings.CutPrefix(path, "/lib/systemd/"); ok { // what Debian 12 calls it; /lib is a link there
		path = "/usr/lib/systemd/" + rest
	}
	known := slices.ContainsFunc(slices.Concat(unitDirs, generatedDirs), func(dir string) bool { return below(path, dir) })
	return known && fingerprint.IsRegular(files[p.at(path)])
}

// isTrusted reports whether a unit is of the image and its listeners and mounts belong to the host. Those of a user's
// manager and of docker belong to their users instead.
func (p Plan) isTrusted(u unit, files fingerprint.Set) bool {
	return !strings.HasPrefix(u.name, "user@") && u.name != dockerUnit && p.isOfImage(u, files)
}

// isOfImage reports whether a unit is of the image.
func (p Plan) isOfImage(u unit, files fingerprint.Set) bool {
	if u.transient || matches(slices.Concat(p.Units, p.OwnUnits), u.name) {
		return false
	}
	for _, path := range append([]string{u.fragment}, u.dropIns...) {
		if !p.isUnchangedUnitFile(files, path) {
			return false
		}
	}
	return true
}

// startPrecision is how precisely the kernel records when a process was started: to a hundredth of a second.
const startPrecision = 10 * time.Millisecond

// noteDelay is how late systemd may record that a unit began to start. It does so after it has started the first process,
// which may have started others by then on a busy host.
const noteDelay = time.Second

// owns reports whether the unit has started a process in its control group: the process descends from the main process or
// from a control process, or was started while the unit was starting, as a daemon is by a script. Root can move any process
// into any control group.
func (u unit) owns(h process) bool {
	if u.name != h.unit {
		return false
	}
	descends := func(pid int) bool { return pid > 1 && slices.Contains(h.ancestry, pid) }
	return descends(u.mainPID) || descends(u.controlPID) || u.spawnedAtStart(h)
}

// spawnedAtStart reports whether a process was started while the unit was starting. A unit that waits for RestartSec= is
// activating too, but starts nothing. Its SubState is auto-restart or, in newer versions of systemd, auto-restart-queued.
func (u unit) spawnedAtStart(h process) bool {
	starting := u.active == "activating" && !strings.HasPrefix(u.sub, "auto-restart")
	return u.began > 0 && h.started >= u.began-noteDelay && (starting || h.started <= u.ready+startPrecision)
}

// accountsForListener reports whether all owners of a listener belong to units of the image.
func (i imageUnits) accountsForListener(ctx context.Context, l listener, owners []process) (bool, error) {
	files, err := i.files()
	if err != nil {
		return false, err
	}
	for _, h := range owners {
		var ok bool
		if h.pid == 1 {
			ok, err = i.socketUnitListens(ctx, l, files)
		} else if strings.HasSuffix(h.unit, ".service") {
			var u unit
			u, err = i.manager.unit(ctx, h.unit)
			ok = u.owns(h) && i.plan.isTrusted(u, files)
		}
		if err != nil || !ok {
			return false, err
		}
	}
	return len(owners) > 0, nil
}

// socketUnitListens reports whether systemd itself listens for a socket unit of the image.
func (i imageUnits) socketUnitListens(ctx context.Context, l listener, files fingerprint.Set) (bool, error) {
	sockets, err := i.manager.sockets(ctx)
	if err != nil {
		return false, err
	}
	l.inode = 0
	return slices.ContainsFunc(sockets, func(s socketUnit) bool {
		return slices.Contains(s.listeners, l) && i.plan.isTrusted(s.unit, files)
	}), nil
}

// accountsForMount reports whether a mount is at the place of a mount unit of the image. A mount that root has put there
// instead is not detected.
func (i imageUnits) accountsForMount(ctx context.Context, m mount) (bool, error) {
	kind := ".mount"
	if m.at().automount {
		kind = ".automount"
	}
	name := systemdunit.UnitNamePathEscape(m.Point) + kind
	if len(name) > unitNameMax { // systemd would name its unit otherwise or not have one, and the question would be about another unit
		return false, nil
	}
	u, err := i.manager.unit(ctx, name)
	if err != nil {
		return false, err
	}
	files, err := i.files()
	return err == nil && i.plan.isTrusted(u, files), err
}
