//go:build soak

package soak_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestRollingUpgradeOnDynamoDB has replicas of two versions serve one account, while each in turn becomes one of the other version.
// The version before takes sweeps over late.
func TestRollingUpgradeOnDynamoDB(t *testing.T) {
	prepare := func() { installEmulators(t); t.Setenv(olderVariable, older(t)) }
	inNamespaces(t, prepare, func(d *disk) {
		underFire(t, d, fire{start: func(s *stage) { s.onDynamoDB(3) }, callers: 16, faults: (*nemesis).versions, unjudged: true})
	})
}

// TestRollingUpgradeOnSQLite has them serve one file.
func TestRollingUpgradeOnSQLite(t *testing.T) {
	inNamespaces(t, func() { t.Setenv(olderVariable, older(t)) }, func(d *disk) {
		underFire(t, d, fire{start: func(s *stage) { s.onSQLite(2) }, callers: 40, faults: (*nemesis).versions, unjudged: true})
	})
}

// versions has a replica end as systemd ends it, and one of the other version start in its place. The agents are of this version, so those of the version
// before serve them too; agents of that version are those of TestUpgrade.
func (n *nemesis) versions() []fault {
	return []fault{{"change of the version", (*replica).end, func(r *replica) error {
		if r.bin == bin(n) {
			r.bin = older(n)
		} else {
			r.bin = bin(n)
		}
		return r.start()
	}}}
}

// endWithin is how long systemd waits for controld.
const endWithin = 90 * time.Second

// end ends the replica with SIGTERM.
func (r *replica) end() error {
	p := r.running()
	if err := syscall.Kill(p.pid, syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		if p.clock != nil {
			p.clock.close()
		}
		return nil
	case <-time.After(endWithin):
		return fmt.Errorf("replica %d did not end within %s", r.number, endWithin)
	}
}
