package slate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/remuda-ci/remuda/internal/host/tree"
)

// spools are where jobs for later and their output are kept: cron and at of Debian and of Red Hat, and mail.
var spools = []string{
	"/var/spool/cron/crontabs", "/var/spool/cron", "/var/spool/cron/atjobs", "/var/spool/cron/atspool",
	"/var/spool/at", "/var/spool/at/spool", "/var/mail",
}

// jobs are the files of what the user wants to be done later: those that he owns, and those that bear his name.
func (p Plan) jobs() ([]string, error) {
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

func (p Plan) removeJobs() error {
	found, err := p.jobs()
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
