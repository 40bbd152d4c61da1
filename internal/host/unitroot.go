package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/remuda-ci/remuda/internal/host/dockerstore"
	"github.com/remuda-ci/remuda/internal/host/script"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/safefile"
	"github.com/remuda-ci/remuda/internal/tree"
)

// The rest of this file runs as root, in units of their own that agentd starts: agentd
// itself has no rights over the runner's user.

// Reset resets everything that jobs can write to on this machine: see package reset.
type Reset interface {
	// Record remembers the state of the machine before its first job.
	Record(ctx context.Context) error
	// Run ends what jobs have left running, and renews what they wrote to. It adds its steps to the statement. With keepImages docker keeps its images.
	Run(ctx context.Context, r *statement.Reset, keepImages bool) error
	// Verify checks the result, and adds its checks to the statement. A finding is an error.
	Verify(ctx context.Context, r *statement.Reset, keepImages bool) error
	// KeepImages makes what is left in docker a cache. After an error RemoveImages is to be called, which deletes it.
	KeepImages(ctx context.Context, c dockerstore.Cache) (dockerstore.Outcome, error)
	RemoveImages(ctx context.Context) error
}

// PrepareNow makes the host ready for its first job in this boot: it lays out the disk, runs the pre-runner script,
// and then records the baseline of the machine.
func (h *Host) PrepareNow(ctx context.Context) error {
	l, ok := h.layout.(*unitLayout)
	if !ok {
		return errors.New("prepare host: its configuration has no section systemd")
	}
	// It deletes what a job works on. A runner may be running if the files of its task were lost.
	running, err := l.processes.manager.Running(ctx, runnerUnits)
	if err == nil && len(running) > 0 {
		err = fmt.Errorf("%s is running: release the host first", strings.Join(running, ", "))
	}
	if err == nil {
		err = l.layOut()
	}
	if err == nil {
		err = h.runPreRunner(ctx)
	}
	if err == nil {
		err = l.maskUserManager()
	}
	if err == nil {
		h.verifyCaches(ctx)
		err = l.o.Reset.Record(ctx)
	}
	if err != nil {
		return fmt.Errorf("prepare host: %w", err)
	}
	return nil
}

// maskUserManager keeps logind from starting a user manager for the runner's user: what
// runs there is outside the unit of the run and its confinement.
func (l *unitLayout) maskUserManager() error {
	if l.o.Privileged {
		return nil
	}
	// systemctl mask would reload systemd, and version 252 then forgets the
	// ExecStopPost= of running transient units (see startRecord.Started).
	mask := fmt.Sprintf("/run/systemd/system/user@%d.service", l.o.UID)
	if err := os.MkdirAll(filepath.Dir(mask), 0o755); err != nil {
		return err
	}
	err := os.Symlink(os.DevNull, mask)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
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

// Modes of the directories of the runner's user. The runner's own directory has the mode of the distribution.
const (
	ModeWork = 0o755
	modeBox  = 0o775
)

// layOut renews what belongs to the runner below the host's directory.
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

// layOutRegistration makes root's own copy of the runner. What is right already stays:
// another link to a file of the distribution would count as a change of that file.
func (l *unitLayout) layOutRegistration() error {
	if err := tree.Mirror(l.h.o.Distribution, l.registrationDir(), tree.Owner{}); err != nil {
		return fmt.Errorf("renew root's runner: %w", err)
	}
	return os.Chmod(l.registrationDir(), 0o700)
}

// owner is the runner's user with the group of root. agentd has no capabilities over
// other users, and reads and deletes by its group.
func (l *unitLayout) owner() tree.Owner { return tree.Owner{UID: l.o.UID} }

// layOutBox keeps the marker that a job was refused, which stays permanently. Jobs can
// write in the box but do not own it, so they cannot close it to the agent.
func (l *unitLayout) layOutBox() error {
	box := l.h.path(jobBox)
	refused, err := safefile.Read(l.h.path(markRefused))
	kept := err == nil || errors.Is(err, safefile.ErrNotRegular)
	if err := tree.Renew(box, tree.Owner{GID: l.o.GID}, modeBox); err != nil {
		return err
	}
	if !kept {
		return nil
	}
	return writeFileMode(l.h.path(markRefused), refused, 0o644)
}

func (l *unitLayout) clean(ctx context.Context, r *statement.Reset, keepImages bool) error {
	if err := l.o.Reset.Run(ctx, r, keepImages); err != nil {
		return err
	}
	if err := l.layOutRegistration(); err != nil {
		return err
	}
	return l.layOutBox()
}

func (l *unitLayout) verify(ctx context.Context, r *statement.Reset, keepImages bool) error {
	return l.o.Reset.Verify(ctx, r, keepImages)
}

// keyWithinReach: a job that is root can read what belongs to root.
func (l *unitLayout) keyWithinReach() bool { return l.o.Privileged }

// makeReady runs the pre-runner script again, since what it had made was renewed. Then it records the state
// of the machine as the baseline of the next clean-up: the verification has just found nothing else.
func (l *unitLayout) makeReady(ctx context.Context) error {
	if l.h.o.PreRunner == "" {
		return nil
	}
	if err := l.h.runPreRunner(ctx); err != nil {
		return err
	}
	return l.o.Reset.Record(ctx)
}
