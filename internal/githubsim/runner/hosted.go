package runner

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// hostedStopTime is how long a machine may take to stop. Its job gets the time that actions/runner gives one.
const hostedStopTime = 15 * time.Second

// Hosted stands for GitHub's own machines: it runs jobs that ask for its labels, each on a fresh one that is gone after it. No list of
// runners has them, and they register without a call of GitHub's.
type Hosted struct {
	URL    string    // of the stand-in
	Owner  string    // whose jobs it runs, in any repository
	Labels []string  // default: ubuntu-latest
	Runner string    // the stand-in runner's program
	Output io.Writer // of the runners; default: none
	Env    []string  // what the machines have beside this process's environment
}

// Run has one machine at a time until ctx ends, and then ends it with the job that it has. For more, call it more often.
func (h Hosted) Run(ctx context.Context) error {
	if len(h.Labels) == 0 {
		h.Labels = []string{"ubuntu-latest"}
	}
	for ctx.Err() == nil {
		if err := h.machine(ctx); err != nil {
			return fmt.Errorf("run a machine of GitHub's: %w", err)
		}
	}
	return nil
}

// machine is one of them, from its start to the end of its job.
func (h Hosted) machine(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "hosted-runner")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := LayOut(dir, h.Runner); err != nil {
		return err
	}
	configure := []string{"configure", "--unattended", "--ephemeral", "--hosted", "--token", "none", "--url", h.URL + "/" + h.Owner,
		"--name", "hosted-" + uuid.NewString()[:8], "--labels", strings.Join(h.Labels, ",")}
	// Not ended in the middle, so that what it registers can be removed.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), hostedStopTime)
	defer cancel()
	if err := h.command(bounded, dir, configure...).Run(); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	if err := h.command(ctx, dir, "run").Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("listen: %w", err)
	}
	if ctx.Err() == nil {
		return nil // its registration went with its job
	}
	bounded, cancel = context.WithTimeout(context.WithoutCancel(ctx), hostedStopTime)
	defer cancel()
	return h.command(bounded, dir, "remove", "--token", "none").Run()
}

// command calls the program and not the scripts, which a process that another test is starting may hold open.
func (h Hosted) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "bin", "Runner.Listener"), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, h.Output, h.Output
	cmd.Env = append(os.Environ(), h.Env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = hostedStopTime
	return cmd
}
