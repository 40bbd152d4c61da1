package reset

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/host/tree"
	"github.com/remuda-ci/remuda/internal/proc"
)

// Plan says what belongs to the runs of a host and is renewed between two of them.
type Plan struct {
	// User is the name of the user that jobs run as, with its uid and gid. It is never root.
	User     string
	UID, GID int
	// Home is the user's home directory: a new copy of Skeleton, usually /etc/skel.
	Home     Dir
	Skeleton string
	// Renew are directories that are replaced by empty ones.
	Renew []Dir
	// Empty are directories of the system that are emptied but not replaced, such as /tmp. The private directories of
	// running units stay in them, and the sockets of X11 and the like that the baseline has.
	Empty []Dir
	// Mirrors are directories that are made equal to an original.
	Mirrors []Mirror
	// Units are patterns of path.Match for the units of a run, which are killed and must be gone. The unit that the reset
	// itself runs in is not among them.
	Units []string
	// OwnUnits are patterns of the transient units that may be there during the verification. They should match as few
	// names as possible: what starts by itself under such a name is not noticed.
	OwnUnits []string
	// Docker is the path of the docker command; empty for a host without docker.
	Docker string
	// Hook is the operator's post-release script, which bash runs as root once everything is renewed; empty for none.
	// What it leaves in an emptied directory is a finding.
	Hook string
	// HookLimit is how long the hook may take. After that all processes of its group are killed, which is an error.
	HookLimit time.Duration
	// MinimumFree and MinimumFreeInodes are how much the file systems of Home, Renew and Mirrors need, in bytes and in
	// files; 0 is not checked. A file system that does not count files has enough.
	MinimumFree, MinimumFreeInodes uint64
	// Baseline is the file that Record writes. Only root may be able to write to the directories above it.
	Baseline string
	// Unchanged are files and directories of our own that no run may change: the programs, the runner's distribution.
	// They are compared by everything except content that shows a change. To delete a hard link to one of them, as a job
	// can do in a mirror, is a change too.
	Unchanged []string
	// Root is a directory that stands for / in the paths that this package knows by itself, such as /proc and /etc; empty
	// for / itself.
	Root string
}

// Dir is a directory with the owner and mode that it must have.
type Dir struct {
	Path  string
	Owner tree.Owner
	Mode  fs.FileMode
}

// Mirror is a directory that equals another, except for the owner of its directories.
type Mirror struct {
	From, To string
	Owner    tree.Owner
}

// at returns a path of the system, below Root.
func (p Plan) at(path string) string { return filepath.Join("/", p.Root, path) }

func (p Plan) atEach(paths []string) []string {
	var below []string
	for _, path := range paths {
		below = append(below, p.at(path))
	}
	return below
}

// proc is the proc file system of the host.
func (p Plan) proc() proc.FS { return proc.FS(p.at("/proc")) }

// userUnits are the units that the system manager keeps for the user after a login, or while the user lingers.
func (p Plan) userUnits() []string {
	uid := strconv.Itoa(p.UID)
	return []string{"user@" + uid + ".service", "user-runtime-dir@" + uid + ".service", "user-" + uid + ".slice"}
}

// lingerFile exists when logind keeps the user's units without a login.
func (p Plan) lingerFile() string { return p.at("/var/lib/systemd/linger/" + p.User) }

// runDirs are the directories that a run writes to.
func (p Plan) runDirs() []string {
	places := []string{p.Home.Path}
	for _, dir := range p.Renew {
		places = append(places, dir.Path)
	}
	for _, m := range p.Mirrors {
		places = append(places, m.To)
	}
	return places
}
