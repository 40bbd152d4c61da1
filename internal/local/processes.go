package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is one process of the system.
type Process struct {
	PID     int
	Command string
}

// Processes lists what runs of the system under stateDir: every process that names the directory in its
// arguments, its environment or its working directory, zombies left out.
func Processes(stateDir string) ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var list []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if p, ours := inspect(pid, stateDir); ours {
			list = append(list, p)
		}
	}
	return list, nil
}

// inspect reads one process. One that ends while it is read does not count.
func inspect(pid int, stateDir string) (Process, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	args, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil || len(args) == 0 { // ended, a zombie or of the kernel
		return Process{}, false
	}
	env, _ := os.ReadFile(filepath.Join(dir, "environ")) // not ours to read: not ours
	cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
	mark := []byte(stateDir)
	if !bytes.Contains(args, mark) && !bytes.Contains(env, mark) && !strings.HasPrefix(cwd, stateDir) {
		return Process{}, false
	}
	return Process{PID: pid, Command: string(bytes.TrimSpace(bytes.ReplaceAll(args, []byte{0}, []byte{' '})))}, true
}
