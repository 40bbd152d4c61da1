package runner

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStopGoesOnToSIGKILL has a process that bears SIGINT and SIGTERM, with a child of another session and a clean environment.
func TestStopGoesOnToSIGKILL(t *testing.T) {
	before := killAfter
	killAfter = []time.Duration{10 * time.Millisecond, 10 * time.Millisecond}
	defer func() { killAfter = before }()
	cmd := exec.Command("bash", "-c", `trap '' INT TERM; setsid env -i sleep 1000 & while :; do sleep 0.01; done`)
	cmd.Env = append(os.Environ(), trackingVariable+"=stop-test")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); len(tracked("stop-test", 0)) < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", tracked("stop-test", 0))
		}
	}
	all := map[int]string{}
	for _, p := range tracked("stop-test", 0) {
		all[p.pid], _ = startOf(p.pid)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	_ = stopProcess(cmd.Process.Pid, "stop-test", exited)
	if sig := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); sig != syscall.SIGKILL {
		t.Errorf("ended by %v", sig)
	}
	for pid, start := range all {
		waitGone(t, pid, start)
	}
}

// startOf is when a process began, which tells it from a later one with its pid; false for one that is gone or a zombie.
func startOf(pid int) (string, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third on
	if err != nil || len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", false
	}
	return fields[19], true
}

// waitGone waits for the end of a process that has been killed: the kernel carries a SIGKILL out when the process next runs, which
// may be after its parent has been waited for.
func waitGone(t *testing.T, pid int, start string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if now, lives := startOf(pid); !lives || now != start {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("process %d is left", pid)
			return
		}
	}
}
