// Package archive fetches the archives of actions that the jobs of a run have used, for the runs to come.
package archive

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"github.com/remuda-ci/remuda/internal/host/diag"
)

// Action is a commit of the repository of an action.
type Action struct{ Owner, Repository, SHA string }

// Path is where the runner looks for its archive, below the directory that ACTIONS_RUNNER_ACTION_ARCHIVE_CACHE names (actions/runner,
// src/Runner.Worker/ActionManager.cs, DownloadRepositoryActionAsync).
func (a Action) Path() string {
	return filepath.Join(a.Owner+"_"+a.Repository, a.SHA+".tar.gz")
}

// Bounds of what is read of the runner's logs. A job can write to them as much as it likes.
const (
	MostActions = 64      // of a run
	mostLogs    = 20      // the newest
	readOfLog   = 8 << 20 // bytes, from the beginning: the actions of a job are prepared first
)

// lookedFor is what the worker logs of each action whose archive it looks for, with the commit that GitHub has resolved its tag or branch to
// (actions/runner, src/Runner.Worker/ActionManager.cs, DownloadRepositoryActionAsync). Names have GitHub's form.
var lookedFor = regexp.MustCompile(`Check if action archive '([A-Za-z0-9][A-Za-z0-9_-]{0,38})/([A-Za-z0-9._-]{1,100})@([0-9a-f]{40})' already exists in cache directory '`)

// Used are the actions that the jobs of a run have used, by the logs in the runner's directory, at most MostActions. A job can forge them: what is
// there is only a hint.
func Used(runner string) ([]Action, error) {
	root, err := os.OpenRoot(runner) // a job may put links here: nothing outside is reached
	if err != nil {
		return nil, err
	}
	defer root.Close()
	logs, err := diag.Newest(root, "Worker_", mostLogs)
	if err != nil {
		return nil, err
	}
	var used []Action
	for _, name := range logs {
		if used, err = read(root, name, used); err != nil || len(used) >= MostActions {
			break
		}
	}
	return used, err
}

// read adds the actions that a log names.
func read(runner *os.Root, log string, used []Action) ([]Action, error) {
	f, err := runner.OpenFile(log, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return used, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return used, err
	}
	in := bufio.NewReaderSize(io.LimitReader(f, readOfLog), 64<<10)
	for {
		line, err := in.ReadSlice('\n') // of a longer line only the last part is looked at
		if m := lookedFor.FindSubmatch(line); m != nil {
			a := Action{string(m[1]), string(m[2]), string(m[3])}
			if a.Repository != "." && a.Repository != ".." && !slices.Contains(used, a) {
				used = append(used, a)
			}
		}
		switch {
		case len(used) >= MostActions || errors.Is(err, io.EOF):
			return used, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return used, err
		}
	}
}
