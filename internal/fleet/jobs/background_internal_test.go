package jobs

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet/op"
)

// slow is an operation that takes a minute for its one step.
type slow struct{ done atomic.Bool }

func (s *slow) Step(context.Context, time.Time) (op.Progress, error) {
	time.Sleep(time.Minute)
	s.done.Store(true)
	return op.Done, nil
}

// TestBackground: an operation starts if there is a place for it. The end waits for those that run, and none starts after it.
func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ops := op.NewDriver(nil, hclog.NewNullLogger(), rand.New(rand.NewPCG(1, 1)), nil, nil)
		b := &background{env: &Jobs{Ops: ops, Log: hclog.NewNullLogger()}, places: make(chan struct{}, 1)}
		var first, second, third slow
		if !b.start(t.Context(), "first", &first) || b.start(t.Context(), "second", &second) {
			t.Error("not one operation runs where one may")
		}
		time.Sleep(2 * time.Minute)
		if !first.done.Load() || !b.start(t.Context(), "second", &second) {
			t.Error("an operation that ended has left its place taken")
		}
		b.stop()
		if !second.done.Load() {
			t.Error("the end did not wait for an operation")
		}
		if b.start(t.Context(), "third", &third) {
			t.Error("an operation started after the end")
		}
		synctest.Wait()
	})
}

// fails is an operation whose one step takes a minute and fails.
type fails struct{}

func (fails) Step(context.Context, time.Time) (op.Progress, error) {
	time.Sleep(time.Minute)
	return op.Done, errors.New("refused")
}

// TestBackgroundSaysWhatFailed: the log has an operation that failed, and none that failed since the process ends.
func TestBackgroundSaysWhatFailed(t *testing.T) {
	for name, ends := range map[string]bool{"it failed": false, "the process ends": true} {
		synctest.Test(t, func(t *testing.T) {
			var logs bytes.Buffer
			ops := op.NewDriver(nil, hclog.NewNullLogger(), rand.New(rand.NewPCG(1, 1)), nil, nil)
			b := &background{env: &Jobs{Ops: ops, Log: hclog.New(&hclog.LoggerOptions{Output: &logs})}, places: make(chan struct{}, 1)}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if !b.start(ctx, "a turn", fails{}) {
				t.Fatal("it did not start")
			}
			if ends {
				cancel()
			}
			b.stop()
			if told := strings.Contains(logs.String(), "a turn"); told == ends {
				t.Errorf("%s: the log is %q", name, logs.String())
			}
		})
	}
}

// TestTheEndOfServeJobs: after it no operation is submitted, so the log has none that was not started.
func TestTheEndOfServeJobs(t *testing.T) {
	var logs bytes.Buffer
	js := &Jobs{Log: hclog.New(&hclog.LoggerOptions{Output: &logs})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	js.ServeJobs(ctx)
	js.submit("a turn", &slow{})
	if logs.Len() > 0 {
		t.Errorf("the log is %q", logs.String())
	}
}
