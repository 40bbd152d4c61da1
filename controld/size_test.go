package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/remuda-ci/remuda/internal/testrun"
)

// sizeAtMost bounds the program as packages have it, in bytes. It is 56 MB; the operations of EC2 that it does not call are 28 MB more.
const sizeAtMost = 60_000_000

// TestSize: the program has nothing large that it does not use. If this fails, look for a client of the SDK that has become an interface: see ec2.NewClient.
func TestSize(t *testing.T) {
	program := filepath.Join(t.TempDir(), "controld")
	args := append([]string{"build", "-ldflags=-s -w", "-o", program}, testrun.BuildFlags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	cmd.Env = append(os.Environ(), testrun.BuildEnviron...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > sizeAtMost {
		t.Errorf("controld has %d bytes, and may have %d", info.Size(), sizeAtMost)
	}
}
