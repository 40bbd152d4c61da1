package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/remuda-ci/remuda/internal/host/script"
	"github.com/remuda-ci/remuda/internal/host/tree"
)

// What follows runs as root in units of its own, which agentd starts: agentd
// itself has no right to anything of the runner's user.

// Reset resets everything that jobs can write to on this machine: see package
// reset.
type Reset interface {
	// Record remembers the state of the machine before its first job.
	Record(ctx context.Context) error
	// Run ends what jobs have left running, and renews what they wrote to.
	Run(ctx context.Context) error
	// Verify checks the result. A finding is an error.
	Verify(ctx context.Context) error
}

// PrepareNow makes the host ready for its first job in this boot: what it needs
// on disk, the pre-runner script, and last how the machine is then.
func (h *Host) PrepareNow(ctx context.Context) error {
	l, ok := h.layout.(*unitLayout)
	if !ok {
		return errors.New("prepare host: it has no systemd in its configuration")
	}
	// It deletes what a job works on: whoever began it may have lost his files.
	if running, err := l.processes.manager.Running(ctx, runnerUnits); err != nil || len(running) > 0 {
		return fmt.Errorf("prepare host: %w", errors.Join(err, inUse(running)))
	}
	if err := l.layOut(); err != nil {
		return fmt.Errorf("prepare host: %w", err)
	}
	if err := h.runPreRunner(ctx); err != nil {
		return fmt.Errorf("prepare host: %w", err)
	}
	if err := l.maskUserManager(); err != nil {
		return fmt.Errorf("prepare host: %w", err)
	}
	if err := l.o.Reset.Record(ctx); err != nil {
		return fmt.Errorf("prepare host: %w", err)
	}
	return nil
}

// keepIn takes from jobs the user manager that logind would start for them: what
// runs there is outside the unit of their run, and of its confinement.
func (l *unitLayout) maskUserManager() error {
	if l.o.Privileged {
		return nil
	}
	// Not by systemctl mask: that reloads systemd, and version 252 then forgets what
	// running transient units were told to do last (see begun.Started).
	mask := fmt.Sprintf("/run/systemd/system/user@%d.service", l.o.UID)
	if err := os.MkdirAll(filepath.Dir(mask), 0o755); err != nil {
		return err
	}
	if err := os.Symlink(os.DevNull, mask); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func inUse(running []string) error {
	if len(running) == 0 {
		return nil
	}
	return fmt.Errorf("%s is running: release the host first", strings.Join(running, ", "))
}

// runPreRunner runs the operator's script, if there is one.
func (h *Host) runPreRunner(ctx context.Context) error {
	if h.o.PreRunner == "" {
		return nil
	}
	if err := script.Run(ctx, h.o.PreRunner, h.o.PreRunnerLimit, h.log.Named("pre-runner")); err != nil {
		return fmt.Errorf("pre-runner script: %w", err)
	}
	return nil
}

// Modes of what the runner's user has. The runner's directory has that of the
// distribution.
const (
	ModeWork = 0o755
	modeBox  = 0o775
)

// layOut renews what is the runner's below the host's directory.
func (l *unitLayout) layOut() error {
	if err := l.h.mirrorRunner(l.owner()); err != nil {
		return err
	}
	if err := tree.Renew(l.h.path("work"), tree.Owner{UID: l.o.UID, GID: l.o.GID}, ModeWork); err != nil {
		return err
	}
	if err := l.h.makeDirs("job"); err != nil {
		return err
	}
	if err := l.layOutRegistration(); err != nil {
		return err
	}
	return l.layOutBox()
}

// layOutRegistered makes root's own runner. What is right already stays: a link
// more or less to a file of the distribution would count as a change of it.
func (l *unitLayout) layOutRegistration() error {
	if err := tree.Mirror(l.h.o.Distribution, l.registrationDir(), tree.Owner{}); err != nil {
		return fmt.Errorf("renew root's runner: %w", err)
	}
	return os.Chmod(l.registrationDir(), 0o700)
}

// owner is the runner's user in the group of root, whose agentd has no power
// over other users and reads and deletes by that.
func (l *unitLayout) owner() tree.Owner { return tree.Owner{UID: l.o.UID} }

// layOutBox keeps the word that a job was refused, which is kept for good. Jobs
// write in the box, and it is not theirs: nobody closes it to the agent.
func (l *unitLayout) layOutBox() error {
	box := l.h.path(jobBox)
	refused, err := readFile(l.h.path(markRefused))
	kept := err == nil || errors.Is(err, errNotRegular)
	if err := tree.Renew(box, tree.Owner{GID: l.o.GID}, modeBox); err != nil {
		return err
	}
	if !kept {
		return nil
	}
	return writeFileMode(l.h.path(markRefused), refused, 0o644)
}

func (l *unitLayout) clean(ctx context.Context) error {
	if err := l.o.Reset.Run(ctx); err != nil {
		return err
	}
	if err := l.layOutRegistration(); err != nil {
		return err
	}
	return l.layOutBox()
}

func (l *unitLayout) verify(ctx context.Context) error { return l.o.Reset.Verify(ctx) }

// ready runs the pre-runner script again: what it had made was renewed. How the
// machine is then is what the next clean-up is held against; the check has just
// found nothing else.
func (l *unitLayout) makeReady(ctx context.Context) error {
	if l.h.o.PreRunner == "" {
		return nil
	}
	if err := l.h.runPreRunner(ctx); err != nil {
		return err
	}
	return l.o.Reset.Record(ctx)
}
