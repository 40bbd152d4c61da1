package reset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/remuda-ci/remuda/internal/retry"
)

const (
	// unitLimit is how long the units of a run may take to be gone. Killed units take some milliseconds. A unit whose
	// ExecStopPost= hangs takes the limit of that, which must be set below this one where the unit is started.
	unitLimit = 30 * time.Second
	// killAgain is when units that are still there are killed again. It leaves time for their ExecStopPost=.
	killAgain = 5 * time.Second
	// unitPause is the time between two looks at units that are ending.
	unitPause = 5 * time.Millisecond
)

// connect connects to the system manager by its private socket, which exists without a message bus.
func connect(ctx context.Context) (*dbus.Conn, error) {
	conn, err := dbus.NewSystemdConnectionContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to systemd: %w", err)
	}
	return conn, nil
}

// leftoverUnits is what is left of units: what systemd still has loaded, and control groups with processes in them.
type leftoverUnits struct {
	units  []dbus.UnitStatus
	groups []string
}

func (r leftoverUnits) empty() bool { return len(r.units) == 0 && len(r.groups) == 0 }

// names returns the names of all that is left, for a sentence.
func (r leftoverUnits) names() []string {
	names := slices.Clone(r.groups)
	for _, u := range r.units {
		names = append(names, u.Name+" ("+u.ActiveState+")")
	}
	return names
}

// findLeftoverUnits returns what is left of the units of the run and of the user. Those of the user are templates and
// slices, which systemd may keep loaded without running them.
func (p Plan) findLeftoverUnits(ctx context.Context, conn *dbus.Conn) (leftoverUnits, error) {
	users := p.userUnits()
	units, err := conn.ListUnitsByPatternsContext(ctx, nil, slices.Concat(p.Units, users))
	if err != nil {
		return leftoverUnits{}, fmt.Errorf("list units: %w", err)
	}
	units = slices.DeleteFunc(units, func(u dbus.UnitStatus) bool {
		return slices.Contains(users, u.Name) && u.ActiveState == "inactive" && u.JobId == 0
	})
	groups, err := populatedGroups(p.at("/sys/fs/cgroup"), slices.Concat(p.Units, users))
	return leftoverUnits{units: units, groups: groups}, err
}

// populatedGroups returns the control groups of units with processes in them or below.
func populatedGroups(root string, patterns []string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && matches(patterns, d.Name()) {
			var events []byte
			events, err = os.ReadFile(filepath.Join(path, "cgroup.events"))
			if err == nil && !slices.Contains(strings.Split(string(events), "\n"), "populated 0") {
				found = append(found, path)
			}
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list control groups: %w", err)
	}
	return found, nil
}

// endUnits kills the units of the run and of the user with all their processes, and waits until they are gone.
func (p Plan) endUnits(ctx context.Context, conn *dbus.Conn) error {
	// This comes first, or logind would start the user's units again.
	if err := os.Remove(p.lingerFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("end lingering of user %s: %w", p.User, err)
	}
	start, killed := time.Now(), time.Time{}
	var failure error
	for {
		left, err := p.findLeftoverUnits(ctx, conn)
		if err != nil || left.empty() {
			return err
		}
		now := time.Now()
		if now.Sub(start) > unitLimit {
			return errors.Join(fmt.Errorf("end units: %s are still there after %s: withdraw the host",
				strings.Join(left.names(), ", "), unitLimit), failure)
		}
		if now.Sub(killed) > killAgain {
			killed = now
			failure = killUnits(ctx, conn, left)
		}
		for _, u := range left.units {
			if u.ActiveState == "failed" {
				_ = conn.ResetFailedUnitContext(ctx, u.Name) // an error means that it is gone, which the next look shows
			}
		}
		if err := retry.Sleep(ctx, unitPause); err != nil {
			return err
		}
	}
}

// killUnits kills units and control groups. Errors of those that end in the meantime matter only if they stay.
func killUnits(ctx context.Context, conn *dbus.Conn, left leftoverUnits) error {
	var errs []error
	for _, path := range left.groups {
		errs = append(errs, os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0))
	}
	for _, u := range left.units {
		// So that it is not started again, whatever its Restart= says.
		_, err := conn.StopUnitContext(ctx, u.Name, "replace", nil)
		errs = append(errs, err)
		if strings.HasSuffix(u.Name, ".service") || strings.HasSuffix(u.Name, ".scope") {
			errs = append(errs, conn.KillUnitWithTarget(ctx, u.Name, dbus.All, int32(syscall.SIGKILL)))
		}
	}
	return errors.Join(errs...)
}

// systemd is the system manager of this host.
type systemd struct{ conn *dbus.Conn }

var _ manager = systemd{}

// property stores one property of a unit, of the type that org.freedesktop.systemd1(5) documents.
func property[T any](properties map[string]any, name string, into *T) error {
	value, ok := properties[name].(T)
	if !ok {
		return fmt.Errorf("unexpected value %v of property %s", properties[name], name)
	}
	*into = value
	return nil
}

func (s systemd) unit(ctx context.Context, name string) (unit, error) {
	properties, err := s.conn.GetUnitPropertiesContext(ctx, name)
	if err != nil {
		return unit{}, fmt.Errorf("read unit %s: %w", name, err)
	}
	u, err := readUnit(properties)
	if err != nil {
		return unit{}, fmt.Errorf("read unit %s: %w", name, err)
	}
	if !strings.HasSuffix(name, ".service") {
		return u, nil
	}
	if u.mainPID, err = s.process(ctx, name, "MainPID"); err != nil {
		return unit{}, err
	}
	u.controlPID, err = s.process(ctx, name, "ControlPID")
	return u, err
}

// process returns a pid of a service, by the name of the property that has it; 0 for none.
func (s systemd) process(ctx context.Context, name, property string) (int, error) {
	value, err := s.conn.GetUnitTypePropertyContext(ctx, name, "Service", property)
	if err != nil {
		return 0, fmt.Errorf("read unit %s: %w", name, err)
	}
	pid, ok := value.Value.Value().(uint32)
	if !ok {
		return 0, fmt.Errorf("read unit %s: unexpected value of %s: %v", name, property, value.Value)
	}
	return int(pid), nil
}

func (s systemd) mainPIDs(ctx context.Context) (map[int]string, error) {
	loaded, err := s.conn.ListUnitsByPatternsContext(ctx, nil, []string{"*.service"})
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}
	found := map[int]string{}
	for _, one := range loaded {
		if one.ActiveState == "inactive" || one.ActiveState == "failed" {
			continue
		}
		pid, err := s.process(ctx, one.Name, "MainPID")
		if err != nil {
			return nil, err
		}
		if pid > 0 {
			found[pid] = one.Name
		}
	}
	return found, nil
}

// readUnit reads the properties of org.freedesktop.systemd1.Unit.
func readUnit(properties map[string]any) (u unit, err error) {
	var began, ready uint64 // in microseconds
	if err := errors.Join(
		property(properties, "Id", &u.name),
		property(properties, "FragmentPath", &u.fragment),
		property(properties, "DropInPaths", &u.dropIns),
		property(properties, "Transient", &u.transient),
		property(properties, "ActiveState", &u.active),
		property(properties, "SubState", &u.sub),
		property(properties, "InactiveExitTimestampMonotonic", &began),
		property(properties, "ActiveEnterTimestampMonotonic", &ready),
	); err != nil {
		return unit{}, err
	}
	u.began, u.ready = time.Duration(began)*time.Microsecond, time.Duration(ready)*time.Microsecond
	return u, nil
}

func (s systemd) sockets(ctx context.Context) ([]socketUnit, error) {
	loaded, err := s.conn.ListUnitsByPatternsContext(ctx, nil, []string{"*.socket"})
	if err != nil {
		return nil, fmt.Errorf("list socket units: %w", err)
	}
	var found []socketUnit
	for _, one := range loaded {
		listen, err := s.conn.GetUnitTypePropertyContext(ctx, one.Name, "Socket", "Listen")
		if err != nil {
			return nil, fmt.Errorf("read unit %s: %w", one.Name, err)
		}
		var addresses [][]any
		if err := listen.Value.Store(&addresses); err != nil {
			return nil, fmt.Errorf("read unit %s: %w", one.Name, err)
		}
		listens := readListen(addresses)
		if len(listens) == 0 {
			continue
		}
		u, err := s.unit(ctx, one.Name)
		if err != nil {
			return nil, err
		}
		found = append(found, socketUnit{u, listens})
	}
	return found, nil
}

// socketProtocols maps the socket types of Listen to the protocols of /proc/net.
var socketProtocols = map[string]string{"Stream": "tcp", "Datagram": "udp"}

// readListen reads the property Listen of a socket unit, which is pairs of a type and an address. Addresses other than
// those of IP are left out.
func readListen(pairs [][]any) []listener {
	var listens []listener
	for _, pair := range pairs {
		if len(pair) != 2 {
			continue
		}
		kind, _ := pair[0].(string)
		text, _ := pair[1].(string)
		address, err := netip.ParseAddrPort(text)
		if protocol := socketProtocols[kind]; protocol != "" && err == nil {
			listens = append(listens, listener{Protocol: protocol, Address: netip.AddrPortFrom(address.Addr().WithZone(""), address.Port())})
		}
	}
	return listens
}
