package runner

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// trackingVariable marks every process of a job, as in actions/runner: a process may leave its parent and its group, its
// environment goes with it.
const trackingVariable = "RUNNER_TRACKING_ID"

type process struct {
	pid, parent int
	name        string
}

// tracked finds the processes of a job: those with its mark, root if it is not 0, and all that descend from them.
func tracked(tracking string, root int) []process {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	mark := []byte(trackingVariable + "=" + tracking)
	ours := map[int]bool{root: root != 0}
	var all []process
	for _, dir := range dirs {
		p, found := readProcess(dir)
		if !found || p.pid == os.Getpid() {
			continue
		}
		all = append(all, p)
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && bytes.Contains(environ, mark) {
			ours[p.pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !ours[p.pid] && ours[p.parent] {
				ours[p.pid], grown = true, true
			}
		}
	}
	var out []process
	for _, p := range all {
		if ours[p.pid] {
			out = append(out, p)
		}
	}
	return out
}

// readProcess reads the stat file of a process directory. Zombies are left out: nothing can be done to them.
func readProcess(dir string) (process, bool) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return process{}, false
	}
	text := string(stat)
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return process{}, false
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) < 2 || fields[0] == "Z" {
		return process{}, false
	}
	pid, err := strconv.Atoi(filepath.Base(dir))
	if err != nil {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return process{pid, parent, text[open+1 : end]}, err == nil
}

func signalAll(ps []process, sig syscall.Signal) {
	for _, p := range ps {
		// A process that has already ended needs no signal.
		_ = syscall.Kill(p.pid, sig)
	}
}

// stopProcess ends the step whose shell is root: with SIGINT, then SIGTERM, then SIGKILL, each to the whole of it. It returns how
// the shell ended.
func stopProcess(root int, tracking string, exited <-chan error) error {
	for i, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		signalAll(tracked(tracking, root), sig)
		select {
		case err := <-exited:
			return err
		case <-time.After(killAfter[i]):
		}
	}
	signalAll(tracked(tracking, root), syscall.SIGKILL)
	return <-exited
}

// killTracked kills what a job has left behind and says what that was.
func killTracked(tracking string) []process {
	var killed []process
	for range 10 { // processes that fork faster than they are found are left to the owner of the host
		ps := tracked(tracking, 0)
		if len(ps) == 0 {
			break
		}
		signalAll(ps, syscall.SIGKILL)
		killed = append(killed, ps...)
		time.Sleep(time.Millisecond)
	}
	return killed
}
