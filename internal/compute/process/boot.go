package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/remuda-ci/remuda/internal/retry"
	"github.com/remuda-ci/remuda/internal/safefile"
)

// logBytes is the size from which agentd.log is put aside when agentd starts.
// With the one before it, a host's log takes little more than twice of it.
const logBytes = 8 << 20

// boot makes sure that the host's init was started, once and by one replica only, and returns when init has
// recorded its pid. A host that has begun to end, or whose init is dead, is left alone.
//
// The lock is passed on to init, which releases it only once its pid is written: if the
// lock is free and there is no pid, no init lives.
func (c *Compute) boot(ctx context.Context, h host) error {
	for !h.started() {
		lock, free, err := safefile.TryLock(h.path("lock"))
		if err != nil {
			return fmt.Errorf("boot host %s: %w", h.id, err)
		}
		if free && !h.started() {
			err = c.startInit(ctx, h, lock)
		}
		if free {
			lock.Close()
		}
		if err == nil && !h.started() {
			err = retry.Sleep(ctx, lockLook)
		}
		if err != nil {
			return fmt.Errorf("boot host %s: %w", h.id, err)
		}
	}
	return nil
}

// startInit starts init and waits until its pid is written. It reaps init when that ends.
// If this process has died by then, its own reaper does.
func (c *Compute) startInit(ctx context.Context, h host, lock *os.File) error {
	log, err := os.OpenFile(h.path("agentd.log"), os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("/bin/sh", h.path("init"), h.dir, c.opts.AgentPath, c.bootID,
		seconds(c.opts.BootDelay), seconds(c.opts.RestartDelay), strconv.Itoa(logBytes))
	cmd.Dir = h.dir
	cmd.Env = append(slices.Clone(c.opts.Env), InstanceIDVariable+"="+h.id)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock} // becomes file descriptor 3
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start init: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(lockLook)
	defer look.Stop()
	for !h.started() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			if !h.started() {
				return fmt.Errorf("init ended before it began (%v): see %s", err, h.path("agentd.log"))
			}
		}
	}
	return nil
}

// seconds is a duration as the sleep of GNU, busybox and the BSDs takes it.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
