package reset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/host/reset/fingerprint"
	"github.com/remuda-ci/remuda/internal/tree"
)

// startupPaths are files and directories that hold what starts by itself, or what such programs read. Nothing
// legitimate changes them while a host serves runs. The directories of generators are not among them: each reload of
// systemd makes them again.
var startupPaths = []string{
	"/etc/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd/system", "/usr/lib/systemd/system-generators",
	"/etc/init.d", "/etc/rc.local", "/etc/rcS.d", "/etc/rc2.d", "/etc/rc3.d", "/etc/rc5.d",
	"/etc/crontab", "/etc/anacrontab", "/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly",
	"/var/spool/cron", "/var/spool/at",
	"/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/sudoers", "/etc/sudoers.d", "/etc/doas.conf", "/etc/pam.d", "/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow",
	"/etc/ssh", "/root/.ssh", "/root/.profile", "/root/.bashrc",
	"/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/bashrc", "/etc/environment", "/etc/environment.d", "/etc/skel",
	"/etc/udev/rules.d", "/etc/modules-load.d", "/etc/modprobe.d", "/etc/binfmt.d", "/etc/tmpfiles.d", "/etc/sysctl.d",
}

// regeneratedPaths are such directories that generators write to as well, such as netplan's. With each reload of systemd
// they write the same files again, so these are compared by content.
var regeneratedPaths = []string{"/run/systemd/system", "/run/systemd/system.control", "/run/udev/rules.d"}

// transientDir is where systemd writes the files of transient units, those made by a call.
const transientDir = "/run/systemd/transient"

// startupFingerprints returns the fingerprints of what starts by itself.
func (p Plan) startupFingerprints() (fingerprint.Set, error) {
	all := fingerprint.Set{}
	return all, errors.Join(all.Add(p.atEach(startupPaths)...), all.AddContent(p.atEach(regeneratedPaths)...))
}

// ownFingerprints returns the fingerprints of our own files, Plan.Unchanged.
func (p Plan) ownFingerprints() (fingerprint.Set, error) {
	all := fingerprint.Set{}
	return all, all.Add(p.Unchanged...)
}

// generatedFingerprints returns the fingerprints of the units that generators make.
func (p Plan) generatedFingerprints() (fingerprint.Set, error) {
	all := fingerprint.Set{}
	return all, all.AddContent(p.atEach(generatedDirs)...)
}

// loginUnits are the units in which logind holds what users run. They come and go, and their processes are checked one
// by one.
var loginUnits = []string{"session-*.scope", "user-*.slice"}

// transients returns the names of the transient units that are not ours.
func (p Plan) transients() ([]string, error) {
	entries, err := os.ReadDir(p.at(transientDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list transient units: %w", err)
	}
	var names []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".d")
		if !matches(slices.Concat(p.Units, p.OwnUnits, loginUnits), name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// spools are the directories of scheduled jobs and of their output: cron and at of Debian and of Red Hat, and mail.
var spools = []string{
	"/var/spool/cron/crontabs", "/var/spool/cron", "/var/spool/cron/atjobs", "/var/spool/cron/atspool",
	"/var/spool/at", "/var/spool/at/spool", "/var/mail",
}

// scheduledJobs returns the files of jobs that the user has scheduled: those that it owns, and those that bear its name.
func (p Plan) scheduledJobs() ([]string, error) {
	var found []string
	for _, spool := range spools {
		dir := p.at(spool)
		owned, err := p.ownedIn(dir)
		if err != nil {
			return nil, err
		}
		found = append(found, owned...)
		info, err := os.Lstat(dir + "/" + p.User)
		switch {
		case err == nil && !info.IsDir():
			found = append(found, dir+"/"+p.User)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("look for jobs: %w", err)
		}
	}
	if _, err := os.Lstat(p.lingerFile()); err == nil {
		found = append(found, p.lingerFile())
	}
	return found, nil
}

func (p Plan) removeScheduledJobs() error {
	found, err := p.scheduledJobs()
	if err != nil {
		return err
	}
	for _, path := range found {
		if err := tree.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// ownedIn lists the user's files in a directory. The directory may be missing.
func (p Plan) ownedIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var found []string
	for _, e := range entries {
		info, infoErr := e.Info()
		switch {
		case infoErr != nil:
			err = errors.Join(err, ignoreMissing(infoErr))
		case ownerOf(info).UID == p.UID && !info.IsDir():
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	if ignoreMissing(err) != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	return found, nil
}
