package explore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/explore"
	"github.com/remuda-ci/remuda/internal/store/memory"
)

var (
	noon  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	small = lifecycle.QueueName{ResourceClass: "small", UsageClass: lifecycle.UsageOnDemand}
)

// equal: an empty list is no list, and errors are compared by what they are.
var equal = cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateErrors()}

// rows are what an explored fleet keeps.
type rows interface {
	fleet.Store
	fleet.GuardStore
}

// TestRows: the explorer's rows answer every call as the store does, whose
// conditions they keep.
func TestRows(t *testing.T) {
	for seed := range uint64(8) {
		draw := rand.New(rand.NewPCG(seed, 1))
		explored, store := rows(explore.NewRows()), rows(memory.New(func() time.Time { return noon }))
		for range 60 {
			write := aWrite(t.Context(), draw)
			got, gotErr := write(explored)
			want, wantErr := write(store)
			if diff := cmp.Diff(want, got, equal); diff != "" || kindOf(gotErr) != kindOf(wantErr) {
				t.Fatalf("seed %d: a write came back with %v, of the store with %v\n%s", seed, gotErr, wantErr, diff)
			}
			if diff := cmp.Diff(answers(t.Context(), store), answers(t.Context(), explored), equal); diff != "" {
				t.Fatalf("seed %d: reads (-store +rows):\n%s", seed, diff)
			}
		}
	}
}

// aWrite is one that breaks none of the explorer's rules.
func aWrite(ctx context.Context, draw *rand.Rand) func(rows) (any, error) {
	key := []string{"i-1", "i-2", "i-3"}[draw.IntN(3)]
	asks := draw.IntN(2)
	ask, run := []string{"ask-1", "ask-2"}[asks], []string{"run-1", "run-2"}[asks]
	due := noon.Add(time.Duration(draw.IntN(3)-1) * time.Minute)
	pooled, stale := draw.IntN(2) == 0, draw.IntN(3) == 0
	assignment := int64(1 + draw.IntN(2))
	return []func(rows) (any, error){
		func(s rows) (any, error) {
			r := lifecycle.Record{
				HostKey: key, Pool: "default", State: lifecycle.StateClaimed, RunID: run, RequestID: ask, Repository: "acme/app", Assignment: 1,
				Hardware: lifecycle.Hardware{ResourceClass: "small", UsageClass: lifecycle.UsageOnDemand},
				TrustKey: "acme/app", DueAt: due, Threshold: noon.Add(time.Hour),
			}
			if pooled {
				r.State, r.RunID, r.PooledAt = lifecycle.StateIdle, "", due
			}
			return nil, s.CreateInstance(ctx, r)
		},
		func(s rows) (any, error) {
			r, err := s.Instance(ctx, key)
			if err != nil {
				return nil, err
			}
			if r.DueAt = due; stale {
				r.Version--
			}
			return s.UpdateInstance(ctx, r)
		},
		func(s rows) (any, error) {
			return s.ClaimInstance(ctx, lifecycle.Claim{
				HostKey: key, Assignment: assignment, TrustKey: "acme/app", Now: noon, RunID: run, RequestID: ask, Repository: "acme/app",
				Threshold: noon.Add(10 * time.Minute),
			})
		},
		func(s rows) (any, error) {
			return nil, s.CreateRequest(ctx, lifecycle.Request{Repository: "acme/app", RunID: run, RequestID: ask, DueAt: due})
		},
		func(s rows) (any, error) {
			q, err := s.Request(ctx, "acme/app", run, ask)
			if err != nil {
				return nil, err
			}
			if q.DueAt = due; stale {
				q.Version--
			}
			return s.UpdateRequest(ctx, q)
		},
		func(s rows) (any, error) {
			p, err := s.Pause(ctx, fleet.DefaultPool) // of a pool that was resumed
			if err != nil {
				return nil, err
			}
			if stale {
				p.Version--
			}
			return s.UpdatePause(ctx, p)
		},
	}[draw.IntN(6)]
}

// answers are those to every read that operations make.
func answers(ctx context.Context, s rows) map[string]any {
	got := map[string]any{}
	add := func(name string, v any, err error) { got[name] = []any{v, kindOf(err)} }
	for _, key := range []string{"i-1", "i-2", "i-3"} {
		v, err := s.Instance(ctx, key)
		add(key, v, err)
	}
	instances, err := s.Instances(ctx, []string{"i-3", "i-1", "none", "i-1"})
	add("instances", instances, err)
	ofRun, err := s.InstancesOfRun(ctx, "run-1", lifecycle.PageOf{})
	add("by-run", ofRun.Items, err)
	pooled, err := s.PooledInstances(ctx, "default", small, "acme/app", lifecycle.PageOf{})
	add("by-pool", pooled.Items, err)
	due, err := s.DueInstances(ctx, noon, lifecycle.PageOf{})
	add("by-due", due.Items, err)
	requests, err := s.RequestsOfRun(ctx, "acme/app", "run-1")
	add("requests of run", requests, err)
	dueRequests, err := s.DueRequests(ctx, noon, lifecycle.PageOf{})
	add("due requests", dueRequests.Items, err)
	paused, err := s.Pause(ctx, fleet.DefaultPool)
	add("pause", paused, err)
	return got
}

// kindOf is the error without its words.
func kindOf(err error) error {
	for _, kind := range []error{lifecycle.ErrNotFound, lifecycle.ErrExists, lifecycle.ErrConflict} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return err
}
