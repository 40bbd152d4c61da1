package reset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/remuda-ci/remuda/internal/host/tree"
)

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
