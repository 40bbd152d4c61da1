package units

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// Manager talks to systemd on its private bus, which only root may use and which exists
// before any other. It is safe for concurrent use.
type Manager struct {
	// changed is called when a unit may have changed.
	changed func()

	mu   sync.Mutex
	conn *dbus.Conn
}

// New returns a manager that connects on first use, and again after systemd itself was
// replaced. changed may be called by any goroutine.
func New(changed func()) *Manager { return &Manager{changed: changed} }

// callLimit bounds a call to systemd. A healthy one answers in a millisecond.
const callLimit = 5 * time.Second

// do calls f with a connection, and once more with a new one if the old one turns out to be dead.
func (m *Manager) do(ctx context.Context, f func(ctx context.Context, c *dbus.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for try := 0; ; try++ {
		c, err := m.connection(ctx)
		if err != nil {
			return err
		}
		err = f(ctx, c)
		if err == nil || c.Connected() || try > 0 {
			return err
		}
	}
}

func (m *Manager) connection(ctx context.Context) (*dbus.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil && m.conn.Connected() {
		return m.conn, nil
	}
	// A connection lives as long as its context, and ctx is that of a single call.
	c, err := dbus.NewSystemdConnectionContext(context.WithoutCancel(ctx))
	if err != nil {
		return nil, fmt.Errorf("connect to systemd: %w", err)
	}
	if m.conn != nil {
		m.conn.Close()
	}
	m.conn = c
	m.listen(c)
	return c, nil
}

// listen receives changes as long as the connection lives. On systemd's private bus they
// come without a subscription.
func (m *Manager) listen(c *dbus.Conn) {
	updates := make(chan *dbus.PropertiesUpdate, 64)
	c.SetPropertiesSubscriber(updates, make(chan error, 1))
	go func() {
		for range updates {
			m.changed()
		}
	}()
}

// ErrNotStarted means that a unit did not start, or not in time.
var ErrNotStarted = errors.New("the unit did not start")

// replaceTries and replacePause bound the wait for the rest of an earlier unit of the same name to go.
const (
	replaceTries = 100
	replacePause = 10 * time.Millisecond
)

// Start returns once the unit's program has been started. A program that cannot be run ends at once.
func (m *Manager) Start(ctx context.Context, u Unit) error {
	result := make(chan string, 1)
	err := m.do(ctx, func(ctx context.Context, c *dbus.Conn) error {
		for try := 0; ; try++ {
			_, err := c.StartTransientUnitContext(ctx, u.Name, "fail", u.properties(), result)
			if !named(err, "org.freedesktop.systemd1.UnitExists") || try == replaceTries {
				return err
			}
			// A failed unit stays until it is reset.
			if err := c.ResetFailedUnitContext(ctx, u.Name); err != nil && !named(err, noSuchUnit) {
				return err
			}
			time.Sleep(replacePause)
		}
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", u.Name, err)
	}
	select {
	case how := <-result:
		if how != "done" {
			return fmt.Errorf("start %s: %w: %s; journalctl -u %s says why", u.Name, ErrNotStarted, how, u.Name)
		}
		return nil
	case <-time.After(callLimit):
	case <-ctx.Done():
	}
	return fmt.Errorf("start %s: %w within %s", u.Name, ErrNotStarted, callLimit)
}

const noSuchUnit = "org.freedesktop.systemd1.NoSuchUnit"

// named reports whether systemd answered with the error of this name.
func named(err error, name string) bool {
	var answer godbus.Error
	return errors.As(err, &answer) && answer.Name == name
}

// State is the state of a unit.
type State struct {
	// Running is true from its start until all of its processes have ended.
	Running bool
	// MainPID is the pid of its program; 0 if that has ended or not started yet.
	MainPID int
	// Failed says that it has failed. Code is its exit status, or the number of the signal that killed it.
	Failed bool
	Code   int
}

// State returns the state of a unit; the zero State if there is none of this name.
func (m *Manager) State(ctx context.Context, name string) (State, error) {
	var s State
	err := m.do(ctx, func(ctx context.Context, c *dbus.Conn) error {
		active, err := c.GetUnitPropertyContext(ctx, name, "ActiveState")
		if err != nil {
			return err
		}
		switch active.Value.Value() {
		case "active", "activating", "deactivating", "reloading":
			s.Running = true
		case "failed":
			s.Failed = true
		default:
			return nil
		}
		return s.detail(ctx, c, name)
	})
	if err != nil {
		return State{}, fmt.Errorf("look at %s: %w", name, err)
	}
	return s, nil
}

func (s *State) detail(ctx context.Context, c *dbus.Conn, name string) error {
	pid, err := serviceProperty[uint32](ctx, c, name, "MainPID")
	s.MainPID = int(pid)
	if err != nil || s.Running {
		return err
	}
	code, err := serviceProperty[int32](ctx, c, name, "ExecMainStatus")
	s.Code = int(code)
	return err
}

// serviceProperty returns a property of a service; the zero value if it is of another type.
func serviceProperty[T any](ctx context.Context, c *dbus.Conn, name, property string) (value T, err error) {
	p, err := c.GetUnitTypePropertyContext(ctx, name, "Service", property)
	if err == nil {
		value, _ = p.Value.Value().(T)
	}
	return value, err
}

// StartedAt returns when the program of a unit was started.
func (m *Manager) StartedAt(ctx context.Context, name string) (at time.Time, err error) {
	err = m.do(ctx, func(ctx context.Context, c *dbus.Conn) error {
		us, err := serviceProperty[uint64](ctx, c, name, "ExecMainStartTimestamp")
		at = time.UnixMicro(int64(us))
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("look at %s: %w", name, err)
	}
	return at, nil
}

// Signal sends a signal to the program of a unit or, with all, to all of its processes. A
// unit that is gone is not an error.
func (m *Manager) Signal(ctx context.Context, name string, sig syscall.Signal, all bool) error {
	who := dbus.Main
	if all {
		who = dbus.All
	}
	err := m.do(ctx, func(ctx context.Context, c *dbus.Conn) error {
		return c.KillUnitWithTarget(ctx, name, who, int32(sig))
	})
	if err == nil || named(err, noSuchUnit) || named(err, "org.freedesktop.systemd1.NoSuchProcess") {
		return nil
	}
	return fmt.Errorf("signal %s: %w", name, err)
}

// Running lists the units that match a pattern and have not ended.
func (m *Manager) Running(ctx context.Context, pattern string) ([]string, error) {
	var names []string
	err := m.do(ctx, func(ctx context.Context, c *dbus.Conn) error {
		list, err := c.ListUnitsByPatternsContext(ctx, []string{"active", "activating", "deactivating"}, []string{pattern})
		for _, u := range list {
			names = append(names, u.Name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list units %s: %w", pattern, err)
	}
	return names, nil
}
