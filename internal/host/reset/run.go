// Package reset returns a host to the state before its first run, and then verifies that.
//
// Record remembers what the host has before its first run: the baseline. Run ends everything that runs have left and
// renews what they write to. Verify compares the result with the baseline, as if something else had done the reset.
//
// It runs as root, in a unit of its own and in the host's own namespaces, that is without PrivateTmp= and the like. Any
// doubt that remains at the end is an error, and a host with an error serves no other run: a good host may be taken for a
// bad one, never the reverse. A job that has had root's rights can hide from any such verification. Hosts of pools that
// allow that serve one trust key, as every host does, and are better not reused at all.
//
// Each step looks at what is there and not at what was done, so a reset can be killed anywhere and run again.
package reset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/host/dockerstore"
	"github.com/remuda-ci/remuda/internal/host/script"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/proc"
	"github.com/remuda-ci/remuda/internal/tree"
)

// Run ends everything that runs have left running, removes what they have left on disk and in the kernel, renews what they
// write to, and runs the operator's hook. After an error the host must not be used again, and the steps after the one that
// failed have not been done. Each step is bounded in time, and ctx bounds them all.
func Run(ctx context.Context, p Plan, log hclog.Logger) error {
	if err := p.Validate(); err != nil {
		return err
	}
	base, err := p.readBaseline()
	if err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	conn, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("clean host: %w", err)
	}
	defer conn.Close()
	manager := systemd{conn}
	// What can start something goes before what it could start, and what runs goes before the files that it writes.
	steps := []struct {
		name string
		do   func() error
	}{
		{"units", func() error { return p.endUnits(ctx, conn) }},
		{"processes", func() error { return p.killProcesses(ctx) }},
		{"containers", func() error { return p.removeOfDocker(ctx, manager, log) }},
		{"jobs", p.removeScheduledJobs},
		{"processes again", func() error { return p.killProcesses(ctx) }}, // that cron or a container has started in the meantime
		{"mounts", func() error { return p.unmount(ctx, manager, base) }},
		{"ipc", p.removeIPC},
		{"keys", func() error { return p.removeKeys(ctx, log) }},
		{"files elsewhere", p.removeLeftovers},
		{"directories", p.renew},
		{"temporary directories", func() error { return p.emptyTemporary(ctx, conn, base.Sockets) }},
		{"post-release hook", func() error { return p.hook(ctx, log) }},
	}
	if p.Hook == "" {
		steps = steps[:len(steps)-1]
	}
	for _, step := range steps {
		start := time.Now()
		err := step.do()
		log.Debug("reset step finished", logkey.Step, step.name, logkey.Took, time.Since(start), logkey.Error, err)
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("clean host: %s: %w", step.name, err)
		}
		if p.Statement != nil {
			p.Statement.Did(step.name)
		}
	}
	return nil
}

// hook runs the operator's script.
func (p Plan) hook(ctx context.Context, log hclog.Logger) error {
	return script.Run(ctx, p.Hook, p.HookLimit, log.Named("post-release"))
}

// renew replaces what runs write to.
func (p Plan) renew() error {
	for _, dir := range p.Renew {
		if err := tree.Renew(dir.Path, dir.Owner, dir.Mode); err != nil {
			return err
		}
	}
	for _, m := range p.Mirrors {
		if err := tree.Mirror(m.From, m.To, m.Owner); err != nil {
			return err
		}
	}
	// The home belongs to us until it is complete.
	if err := tree.Renew(p.Home.Path, tree.Owner{UID: os.Geteuid(), GID: os.Getegid()}, 0o700); err != nil {
		return err
	}
	err := tree.Copy(p.Skeleton, p.Home.Path, p.Home.Owner)
	return errors.Join(err, os.Chmod(p.Home.Path, p.Home.Mode))
}

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
	// Images has the images of docker; nil for a host without docker. KeepImages leaves those of the last run there, which then must be settled.
	Images     *dockerstore.Store
	KeepImages bool
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
	// Statement gets the steps of Run that were done, and the checks of Verify with their findings; nil for neither.
	Statement *statement.Reset
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

// Validate checks the plan. A mistake in it would delete or kill what does not belong to a run.
func (p Plan) Validate() error {
	var errs []error
	if p.UID <= 0 || p.GID <= 0 {
		errs = append(errs, fmt.Errorf("user %q has uid %d and gid %d: runs need a user other than root", p.User, p.UID, p.GID))
	}
	if p.User == "" || strings.ContainsAny(p.User, "/\x00") || strings.HasPrefix(p.User, ".") {
		errs = append(errs, fmt.Errorf("%q is not a user name", p.User))
	}
	paths := append(p.runDirs(), p.Baseline, p.Skeleton)
	for _, dir := range p.Empty {
		paths = append(paths, dir.Path)
	}
	for _, m := range p.Mirrors {
		paths = append(paths, m.From)
	}
	for _, path := range append(paths, p.Unchanged...) {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
			errs = append(errs, fmt.Errorf("%q is not a clean absolute path", path))
		}
	}
	for _, pattern := range slices.Concat(p.Units, p.OwnUnits) {
		// systemd's patterns are those of fnmatch. path.Match knows the part of them that counts here.
		if _, err := path.Match(pattern, ""); err != nil || strings.HasPrefix(pattern, "*") || pattern == "" {
			errs = append(errs, fmt.Errorf("%q is not a pattern of names with a common prefix", pattern))
		}
	}
	if p.Hook != "" && p.HookLimit <= 0 {
		errs = append(errs, fmt.Errorf("%s has no time limit", p.Hook))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("invalid reset plan: %w", err)
	}
	return nil
}
