package reset

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
)

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
