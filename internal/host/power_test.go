package host_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/host"
)

// powerSwitch ends nothing, and tells what it was asked.
type powerSwitch struct {
	why []string
	err error
	// check is called first.
	check func()
}

func (p *powerSwitch) Off(_ context.Context, why string) error {
	if p.check != nil {
		p.check()
	}
	p.why = append(p.why, why)
	return p.err
}

func TestPowerOffOfAMachineWithASwitch(t *testing.T) {
	t.Parallel()
	power := &powerSwitch{}
	b := newBed(t, func(o *host.Options) { o.Power = power })
	b.register()
	b.listen()
	power.check = func() {
		if left := b.processes(); len(left) > 0 {
			t.Errorf("processes are left when the machine goes: %v", left)
		}
	}
	broken := errors.New("out of order")
	power.err = broken
	if err := b.PowerOff(context.Background(), "test"); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	power.err = nil
	b.check(b.PowerOff(context.Background(), "test"))
	if len(power.why) != 2 || power.why[1] != "test" {
		t.Errorf("the switch was turned %d times: %q", len(power.why), power.why)
	}
}

func TestInterruptionIsSeenAndTold(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if at := b.look().InterruptionAt; !at.IsZero() {
		t.Errorf("interruption at %s without a report", at)
	}
	select {
	case <-b.Changed():
	default:
	}
	at := time.Now().Add(2 * time.Minute).Truncate(time.Second)
	b.Interrupted(at)
	select {
	case <-b.Changed():
	default:
		t.Error("nothing has changed")
	}
	if got := b.look().InterruptionAt; !got.Equal(at) {
		t.Errorf("interruption at %s, want %s", got, at)
	}
}
