// Package units runs the tasks of a host as transient units of systemd, which outlive the
// program that started them.
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

// BegunAt returns when systemd began to start a unit, before anything that the unit writes. ExecMainStartTimestamp is no such time: systemd takes it after
// it has started the program, which may have written by then. ConditionTimestamp it takes before (unit_test_condition in src/core/unit.c), whether the
// unit has conditions or not.
func (m *Manager) BegunAt(ctx context.Context, name string) (at time.Time, err error) {
	err = m.do(ctx, func(ctx context.Context, c *dbus.Conn) error {
		p, err := c.GetUnitPropertyContext(ctx, name, "ConditionTimestamp")
		if err != nil {
			return err
		}
		us, ok := p.Value.Value().(uint64)
		if !ok || us == 0 {
			return fmt.Errorf("its ConditionTimestamp is %s", p.Value)
		}
		at = time.UnixMicro(int64(us))
		return nil
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

// Slice holds all of our units, so that what jobs use can be measured and limited as a whole.
const Slice = "remuda.slice"

// Unit describes a service to start. It needs no unit file.
type Unit struct {
	Name, Description string
	Args              []string
	// Check runs before it, as the same user in the same sandbox. If it fails, the
	// unit does not start. Empty for none.
	Check []string
	// Before runs before it too, as root and without the sandbox. The unit starts even if it fails. Empty for none.
	Before []string
	// Last runs as root after all processes of the unit have ended, with the
	// variables of systemd.exec(5) about the result. Empty for none.
	Last []string
	Dir  string
	// Env can be read by every user of the machine, so it must not have secrets.
	Env []string
	// EnvFile is a file of variables for secrets, which systemd reads as root when the unit starts. It may be
	// gone when Last runs, for which systemd reads it again.
	EnvFile string
	// Identifier is its SYSLOG_IDENTIFIER in the journal.
	Identifier string
	// Limit is how long it may run; 0 for no limit.
	Limit time.Duration
	// Interrupt, if it is not 0, makes a stop of the unit send SIGINT to its program alone, and SIGKILL after this time to everything that
	// is left. With 0 every process gets SIGTERM, and SIGKILL after stopLimit.
	Interrupt time.Duration
	// Confined makes it run as another user in a sandbox; nil for root without one.
	Confined *Confinement
}

// Confinement limits what a unit of the runner's user may do.
type Confinement struct {
	User   string
	Groups []string
	Limits Limits
	// NoMetadata keeps it from reaching the instance metadata service. If the kernel
	// cannot filter by cgroup, this has no effect: see Unit.Check.
	NoMetadata bool
	// Privileged lets it become root by sudo.
	Privileged bool
}

// Limits are what the processes of a unit may use; 0 for the default of systemd.
type Limits struct {
	// Tasks bounds the processes and threads of the unit, and those of the user.
	Tasks uint64
	// OpenFiles applies to each process.
	OpenFiles uint64
	// MemoryMax applies to the whole unit, in bytes.
	MemoryMax uint64
}

// stopLimit is the time from SIGTERM to SIGKILL for what is left of a unit. These are
// leftovers of a job or hook, whose orderly end is not worth a wait.
const stopLimit = 5 * time.Second

// command is the D-Bus type of one line of ExecStartEx= and its like.
type command struct {
	Path  string
	Args  []string
	Flags []string
}

func commands(args []string, flags ...string) []command {
	return []command{{args[0], args, append([]string{"no-env-expand"}, flags...)}}
}

func property(name string, value any) dbus.Property {
	return dbus.Property{Name: name, Value: godbus.MakeVariant(value)}
}

// properties returns the properties of the transient unit.
func (u Unit) properties() []dbus.Property {
	all := []dbus.Property{
		property("Description", u.Description),
		// With type exec a program that ends at once would count as not started.
		property("Type", "simple"),
		property("Slice", Slice),
		property("ExecStartEx", commands(u.Args)),
		property("WorkingDirectory", u.Dir),
		property("Environment", u.Env),
		property("StandardInput", "null"),
		property("StandardOutput", "journal"),
		property("StandardError", "journal"),
		property("SyslogIdentifier", u.Identifier),
	}
	all = append(all, u.stopping()...)
	var first []command
	if len(u.Check) > 0 {
		first = append(first, commands(u.Check)...)
	}
	if len(u.Before) > 0 {
		first = append(first, commands(u.Before, "privileged", "ignore-failure")...)
	}
	if len(first) > 0 {
		all = append(all, property("ExecStartPreEx", first))
	}
	if len(u.Last) > 0 {
		all = append(all, property("ExecStopPostEx", commands(u.Last, "privileged")))
	}
	if u.EnvFile != "" {
		all = append(all, property("EnvironmentFiles", []environmentFile{{u.EnvFile, true}}))
	}
	if u.Limit > 0 {
		all = append(all, property("RuntimeMaxUSec", microseconds(u.Limit)))
	}
	if u.Confined != nil {
		all = append(all, u.Confined.properties()...)
	}
	return all
}

// stopping says how the unit is stopped.
func (u Unit) stopping() []dbus.Property {
	if u.Interrupt == 0 {
		return []dbus.Property{property("KillMode", "control-group"), property("TimeoutStopUSec", microseconds(stopLimit))}
	}
	return []dbus.Property{
		property("KillMode", "mixed"), property("KillSignal", int32(syscall.SIGINT)), property("TimeoutStopUSec", microseconds(u.Interrupt)),
	}
}

type environmentFile struct {
	Path     string
	Optional bool
}

// killedFirst is the OOMScoreAdjust of a job: when memory is short the kernel kills it
// before the host's own services.
const killedFirst = int32(500)

func (c *Confinement) properties() []dbus.Property {
	all := []dbus.Property{
		property("User", c.User),
		property("Group", c.User),
		property("OOMPolicy", "continue"), // one process of a job that was too big is the job's affair
		property("OOMScoreAdjust", killedFirst),
		property("KeyringMode", "private"),
		property("NoNewPrivileges", !c.Privileged),
	}
	if len(c.Groups) > 0 {
		all = append(all, property("SupplementaryGroups", c.Groups))
	}
	if c.NoMetadata {
		all = append(all, property("IPAddressDeny", metadataAddresses()))
	}
	return append(all, c.Limits.properties()...)
}

func (l Limits) properties() []dbus.Property {
	var all []dbus.Property
	if l.Tasks > 0 {
		// LimitNPROC is for kernels on which systemd has no pids controller.
		all = append(all, property("TasksMax", l.Tasks), property("LimitNPROC", l.Tasks), property("LimitNPROCSoft", l.Tasks))
	}
	if l.OpenFiles > 0 {
		all = append(all, property("LimitNOFILE", l.OpenFiles), property("LimitNOFILESoft", l.OpenFiles))
	}
	if l.MemoryMax > 0 {
		all = append(all, property("MemoryMax", l.MemoryMax))
	}
	return all
}

func microseconds(d time.Duration) uint64 { return uint64(d.Microseconds()) }
