package runner

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// updateTimeVariable is how long the download of a new version takes, as a Go duration. Default: no time. The real one has some 200 MB.
const updateTimeVariable = "STANDIN_RUNNER_UPDATE_TIME"

// updateScript waits for the listener to end and then puts the new version in the place of the old one, as
// src/Misc/layoutbin/update.sh.template of actions/runner 2.336 does. It looks more often: the real one sleeps for 2 s.
const updateScript = `#!/bin/bash
while [ -e /proc/%[1]d ]; do sleep 0.02; done
cd '%[2]s' || exit 1
mv bin bin.%[3]s && ln -s bin.%[4]s bin && touch update.finished
`

// update begins to replace the runner. A second message does nothing. Until the listener ends it takes no job
// (src/Runner.Listener/Runner.cs:645-687, src/Runner.Listener/SelfUpdaterV2.cs:57-133).
func (l *listener) update(version string) {
	if l.updating != "" {
		return
	}
	l.updating, l.updated = version, make(chan struct{})
	fmt.Fprintf(l.out, "Runner update in progress, do not shutdown runner.\nDownloading %s runner\n", version)
	done := l.updated
	go func() {
		time.Sleep(durationOf(os.Environ(), updateTimeVariable, 0))
		close(done)
	}()
}

// leaveForUpdate starts the script as a child of the listener, and ends the listener so that it can do its work. A job that runs ends
// first (SelfUpdaterV2.cs:74-117; the exit codes: Runner.cs:552-559).
func (l *listener) leaveForUpdate() int {
	fmt.Fprintln(l.out, "Waiting for current job finish running.")
	if l.current != nil {
		<-l.current.done()
		l.jobEnded()
	}
	fmt.Fprintln(l.out, "Generate and execute update script.")
	if err := l.startUpdate(); err != nil {
		fmt.Fprintf(l.errOut, "Runner update failed: %v\n", err)
	}
	fmt.Fprintln(l.out, "Runner will exit shortly for update, should be back online within 10 seconds.\nRunner update process finished.")
	if l.settings.Ephemeral {
		return exitUpdatingRunOnce
	}
	return exitUpdating
}

// startUpdate lays out the new version beside the old one, and starts the script.
func (l *listener) startUpdate() error {
	old, work := versionOf(l.root), l.settings.WorkFolder
	if !filepath.IsAbs(work) {
		work = filepath.Join(l.root, work)
	}
	next := filepath.Join(l.root, "bin."+l.updating)
	if out, err := exec.Command("cp", "-aT", filepath.Join(l.root, "bin"), next).CombinedOutput(); err != nil {
		return fmt.Errorf("copy runner: %w: %s", err, out)
	}
	path := filepath.Join(next, filepath.Base(manifestFile))
	if err := os.Remove(path); err != nil {
		return err
	}
	if err := os.WriteFile(path, manifest(l.updating), 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	script := filepath.Join(work, "_update.sh")
	text := fmt.Sprintf(updateScript, os.Getpid(), l.root, old, l.updating)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		return err
	}
	return exec.Command("bash", script).Start()
}
