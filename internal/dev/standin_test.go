package dev

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// TestStandinIsNotMistaken: another process that has the stand-in's old pid is left alone.
func TestStandinIsNotMistaken(t *testing.T) {
	dir := t.TempDir()
	other := exec.Command("sh", "-c", "read -r line", "--state-dir", dir)
	if _, err := other.StdinPipe(); err != nil { // on which it waits
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	if err := writeStandinID(dir, StandinID{PID: other.Process.Pid, Addr: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	s := &Standin{StandinID: StandinID{PID: other.Process.Pid}, dir: dir}
	if s.Find() {
		t.Error("another process was taken for the stand-in")
	}
	if err := s.End(); err != nil {
		t.Error(err)
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", other.Process.Pid)) // a dead one has none
	if err != nil || len(args) == 0 {
		t.Error("a process that is no stand-in was ended")
	}
}
