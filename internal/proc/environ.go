package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// environTries is how often Environ looks: a process may start another program between the reads of two files.
const environTries = 3

// Environ returns the environment that the process was started with, each variable followed by a zero byte. It is empty
// if the process has none, is gone, or is not ours to read. known is false while it cannot be seen: between two programs
// (execve) a process has neither the old environment nor the new one, and while it ends it has none.
func (p FS) Environ(pid int) (environ []byte, known bool) {
	for range environTries {
		environ, err := os.ReadFile(p.path(pid, "environ"))
		if err != nil {
			return nil, true
		}
		if len(environ) > 0 {
			return environ, true
		}
		s, err := p.Stat(pid)
		if err != nil || s.Dead() || s.Kernel {
			return nil, true
		}
		if empty, err := p.startedWithout(pid); err != nil || empty {
			return nil, true
		}
	}
	return nil, false
}

// Variable returns the value of a variable in an environment; "" if it is not there.
func Variable(environ []byte, name string) string {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// Fields of stat that procfs leaves out, counted from 0 behind the name: 50 and 51 of proc_pid_stat(5).
const (
	envStartField = 47
	envEndField   = 48
)

// startedWithout reports whether the process was started with an empty environment: its bounds in memory are then equal
// and not 0. They are 0 between two programs, and once the process has begun to end.
func (p FS) startedWithout(pid int) (bool, error) {
	text, err := os.ReadFile(p.path(pid, "stat"))
	if err != nil {
		return false, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= envEndField {
		return false, fmt.Errorf("malformed /proc/%d/stat: %d fields", pid, len(fields))
	}
	start, err := strconv.ParseUint(fields[envStartField], 10, 64)
	end, err2 := strconv.ParseUint(fields[envEndField], 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return false, fmt.Errorf("malformed /proc/%d/stat: %w", pid, err)
	}
	return end != 0 && start == end, nil
}
