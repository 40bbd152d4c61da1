// Package slate makes a host as it was before its first run, and then looks whether it is.
//
// It runs as root, in a unit of its own and in the host's own namespaces, so without PrivateTmp= and its like. Whatever
// is still in doubt at the end is an error, and a host with an error serves no other run: so it rather takes a good host
// for a bad one. A job that has had root's rights can hide from any such look; hosts of pools that allow that serve one
// trust key, as every host does, and are better not reused at all.
//
// Each step looks at what is there and not at what was done: it can be killed anywhere and run again.
package slate

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/host/tree"
	"github.com/remuda-ci/remuda/internal/proc"
)

// Plan is what belongs to the runs of a host and is renewed between two of them.
type Plan struct {
	// User is the user whom jobs run as, by name, with the numbers of that. It is never root.
	User     string
	UID, GID int
	// Home is the user's home directory: a new copy of Skeleton, usually /etc/skel.
	Home     Dir
	Skeleton string
	// Renew are directories that are replaced by empty ones.
	Renew []Dir
	// Empty are directories of the system that are emptied and stay, such as /tmp. In them stay the private directories
	// of running units and the sockets of X11 and its like that the baseline has.
	Empty []Dir
	// Mirrors are directories that are made equal to an original.
	Mirrors []Mirror
	// Units are patterns of path.Match: the units of a run, which are killed and must be gone. Not that which this runs in.
	Units []string
	// OwnUnits are patterns of those transient units that may be there when it is checked. The closer they are to one
	// name the better: what starts by itself under such a name is not seen.
	OwnUnits []string
	// Docker is the path of the docker command; empty for a host without.
	Docker string
	// Hook is the operator's post-release script, which bash runs as root once all is renewed; empty for none. What it
	// leaves in an emptied directory is a doubt.
	Hook string
	// HookLimit is how long it may take; with that it and all processes of its group are killed, which is an error.
	HookLimit time.Duration
	// MinimumFree and MinimumFreeInodes are how much the file systems of Home, Renew and Mirrors need, in bytes and in
	// files; what is 0 is not looked at. A file system that does not count files has enough.
	MinimumFree, MinimumFreeInodes uint64
	// Baseline is the file that Record writes, below directories that nobody but root can write to.
	Baseline string
	// Unchanged are files and directories of our own that no run may change: the programs, the runner's distribution.
	// They are compared by everything that tells of a change but their content: whoever deletes a hard link to one of
	// them, as a job can do in a mirror, has changed it too.
	Unchanged []string
	// Root is a directory that stands for / in all that is known by itself, such as /proc and /etc; empty for / itself.
	Root string
}

// Dir is a directory with what it must be like.
type Dir struct {
	Path  string
	Owner tree.Owner
	Mode  fs.FileMode
}

// Mirror is a directory that equals another, but for the owner of its directories.
type Mirror struct {
	From, To string
	Owner    tree.Owner
}

// at is a path of the system.
func (p Plan) at(path string) string { return filepath.Join("/", p.Root, path) }

// proc is the proc file system of the host.
func (p Plan) proc() proc.FS { return proc.FS(p.at("/proc")) }

// userUnits are what the system manager keeps for the user, once he logs in or lingers.
func (p Plan) userUnits() []string {
	uid := strconv.Itoa(p.UID)
	return []string{"user@" + uid + ".service", "user-runtime-dir@" + uid + ".service", "user-" + uid + ".slice"}
}

// lingerFile is there when logind keeps the user's units without a login.
func (p Plan) lingerFile() string { return p.at("/var/lib/systemd/linger/" + p.User) }

// places are where a run writes to.
func (p Plan) places() []string {
	places := []string{p.Home.Path}
	for _, dir := range p.Renew {
		places = append(places, dir.Path)
	}
	for _, m := range p.Mirrors {
		places = append(places, m.To)
	}
	return places
}
