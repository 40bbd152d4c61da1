package local

import (
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/procfs"
)

// Process is one process of the system.
type Process struct {
	PID     int
	Command string
}

// Processes lists what runs of the system under stateDir: every process that names the directory in its
// arguments, its environment or its working directory, zombies left out.
func Processes(stateDir string) ([]Process, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var list []Process
	for _, p := range all {
		args, err := p.CmdLine()
		if err != nil || len(args) == 0 || p.PID == os.Getpid() { // ended, a zombie or of the kernel, or ourselves
			continue
		}
		environ, _ := p.Environ() // not ours to read: not ours
		cwd, _ := p.Cwd()
		command := strings.Join(args, " ")
		if strings.Contains(command, stateDir) || strings.Contains(strings.Join(environ, " "), stateDir) || strings.HasPrefix(cwd, stateDir) {
			list = append(list, Process{PID: p.PID, Command: command})
		}
	}
	return list, nil
}
