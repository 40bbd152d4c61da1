package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// protecting is a cloud with a machine that may not be ended.
type protecting struct {
	fleet.Compute
	mu sync.Mutex
	id string
}

func (p *protecting) protect(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id = id
}

func (p *protecting) Terminate(ctx context.Context, ids []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == p.id })
	err := p.Compute.Terminate(ctx, rest)
	if len(rest) < len(ids) {
		err = errors.Join(err, fmt.Errorf("terminate machine %s: %w: it is protected", p.id, lifecycle.ErrRefused))
	}
	return err
}

// TestAMachineThatMayNotBeEndedStopsNothing: the others are forgotten, and
// requests that stand still are taken up.
func TestAMachineThatMayNotBeEndedStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := &protecting{}
		w := newWorld(t, func(o *fleet.Options) { cloud.Compute, o.Compute = o.Compute, cloud })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.agents(ctx)
		go w.fleet.Sweep(ctx)
		hosts := w.mustProvision(ctx, demand("1", "a", 2))
		cloud.protect(hosts[0].InstanceID)
		for _, h := range hosts {
			w.set(func() { w.deaf[h.HostKey] = true })
			if _, err := w.fleet.Terminate(ctx, h.InstanceID, "a test", time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		stopped, leave := context.WithCancel(ctx)
		go func() {
			time.Sleep(100 * time.Millisecond)
			leave() // the caller goes away
		}()
		_, _ = w.provision(stopped, demand("2", "b", 1))
		time.Sleep(2 * time.Minute)
		if r := w.record(hosts[1].HostKey); !r.DueAt.IsZero() {
			t.Errorf("the other host is not forgotten: %+v", r)
		}
		if r := w.record(hosts[0].HostKey); r.DueAt.IsZero() {
			t.Error("the protected host is forgotten")
		}
		q, err := w.store.Request(ctx, repository, "2", "b")
		if err != nil || !q.Settled() {
			t.Errorf("the request stands still: %+v, %v", q, err)
		}
		cloud.protect("")
		time.Sleep(time.Minute)
		if r := w.record(hosts[0].HostKey); !r.DueAt.IsZero() {
			t.Errorf("the host is not forgotten when it may be ended: %+v", r)
		}
	})
}

// An order whose machine could not be ended says so in the log, and the due sweep goes on. One whose machine ends says nothing.
func TestAnOrderSaysThatItsMachineIsNotEnded(t *testing.T) {
	for name, kept := range map[string]bool{"it ends": false, "it is protected": true} {
		t.Run(name, func(t *testing.T) {
			cloud, logs := &protecting{}, &lockedBuffer{}
			inBubbleOf(t, func(o *fleet.Options) {
				cloud.Compute, o.Compute, o.Log = o.Compute, cloud, hclog.New(&hclog.LoggerOptions{Output: logs})
			}, func(ctx context.Context, t *testing.T, w *world) {
				host := w.mustProvision(ctx, demand("1", "a", 1))[0]
				if kept {
					cloud.protect(host.InstanceID)
				}
				r, err := w.fleet.Terminate(ctx, host.InstanceID, "a test", time.Now())
				if said := strings.Contains(logs.String(), "machine not ended yet"); err != nil || r.State != lifecycle.StateTerminated || said != kept {
					t.Errorf("the host is %s (%v), and the log says that its machine is not ended: %t\n%s", r.State, err, said, logs)
				}
			})
		})
	}
}
