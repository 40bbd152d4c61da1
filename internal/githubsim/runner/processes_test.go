package runner

import (
	"fmt"
	"os"
	"os/exec"
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
	for deadline := time.Now().Add(10 * time.Second); len(tracked("stop-test", 0)) < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", tracked("stop-test", 0))
		}
	}
	all := tracked("stop-test", 0)
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	_ = stopProcess(cmd.Process.Pid, "stop-test", exited)
	if sig := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); sig != syscall.SIGKILL {
		t.Errorf("ended by %v", sig)
	}
	for _, p := range all {
		if found, there := readProcess(fmt.Sprintf("/proc/%d", p.pid)); there && found.name == p.name {
			t.Errorf("%+v is left", found)
		}
	}
}
