// Package units runs what a host has to do as transient units of systemd, which
// live on whatever becomes of the program that started them.
package units

import (
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// Slice holds all of our units, so that what jobs use can be seen and limited
// as a whole.
const Slice = "remuda.slice"

// Unit is a service that is about to start. It needs no file.
type Unit struct {
	Name, Description string
	Args              []string
	// Check is run before it, as the same user in the same sandbox, and keeps it
	// from starting when it fails; none if it is empty.
	Check []string
	// Last is run as root after everything of the unit has ended, with the
	// variables of systemd.exec(5) on how that was; none if it is empty.
	Last []string
	Dir  string
	// Env can be read by every user of the machine: no secrets here.
	Env []string
	// EnvFile is read as root when the unit starts: here they are. It may be gone
	// when Last is run, for which systemd reads it again.
	EnvFile string
	// Identifier is what its lines in the journal are known by.
	Identifier string
	// Limit ends it; 0: no limit.
	Limit time.Duration
	// Confined is what is not for root; nil: it runs as root and as it is.
	Confined *Confinement
}

// Confinement is what a unit of the runner's user may do.
type Confinement struct {
	User   string
	Groups []string
	Limits Limits
	// NoMetadata keeps it off the instance metadata service. Where the kernel
	// cannot filter by cgroup, this does nothing: see Unit.Check.
	NoMetadata bool
	// Privileged lets it become root by sudo.
	Privileged bool
}

// Limits are what all processes of a unit together, or each, may use; 0: as
// systemd has it.
type Limits struct {
	// Tasks are processes and threads, of the unit and of the user.
	Tasks uint64
	// OpenFiles is for each process.
	OpenFiles uint64
	// MemoryMax is in bytes, of the unit.
	MemoryMax uint64
}

// stopLimit is how long what is left of a unit has from SIGTERM to SIGKILL. It
// is a job's rest or a hook's: nobody waits for its manners.
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

// properties are those of the transient unit.
func (u Unit) properties() []dbus.Property {
	all := []dbus.Property{
		property("Description", u.Description),
		// Not exec: a program that ends at once would count as not started.
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

// killedFirst is the OOMScoreAdjust of a job: when memory is short it goes, and
// not what the host is made of.
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
		// The second is for kernels on which systemd has no controller for tasks.
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
