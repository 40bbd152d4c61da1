package units

import (
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// Slice holds all of our units, so that what jobs use can be measured and limited as a whole.
const Slice = "remuda.slice"

// Unit describes a service to start. It needs no unit file.
type Unit struct {
	Name, Description string
	Args              []string
	// Check runs before it, as the same user in the same sandbox. If it fails, the
	// unit does not start. Empty for none.
	Check []string
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
		property("KillMode", "control-group"),
		property("TimeoutStopUSec", microseconds(stopLimit)),
	}
	if len(u.Check) > 0 {
		all = append(all, property("ExecStartPreEx", commands(u.Check)))
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
