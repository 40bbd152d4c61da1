package fleet_test

import (
	"context"
	"errors"
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/services/workqueue"
)

var errDamaged = errors.New("read: damaged document: no JSON from byte 1 on")

// damagedWork has jobs that cannot be read.
type damagedWork struct {
	workqueue.Store
	ids map[string]bool
}

func (s damagedWork) Work(ctx context.Context, service, id string) (model.Job, error) {
	if s.ids[id] {
		return model.Job{}, errDamaged
	}
	return s.Store.Work(ctx, service, id)
}

// A job that cannot be read is given to no worker, and keeps no other.
func TestADamagedJobKeepsNoOther(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "a", "b", "c", "d")
	damaged := map[string]bool{"a": true}
	w.work.Store = damagedWork{w.work.Store, damaged}
	if got := w.claim("render", "w1", workBegan); got == "" || got == "a" {
		t.Errorf("behind a damaged job, w1 got %q", got)
	}
	had := w.claim("render", "w2", workBegan)
	damaged[had] = true
	third := w.claim("render", "w2", workBegan)
	if third == "" || third == had {
		t.Errorf("w2, whose job %s is damaged by now, got %q", had, third)
	}
	if _, found, err := w.fleet.ClaimWork(t.Context(), "render", "w3", "", workBegan); found || !errors.Is(err, errDamaged) {
		t.Errorf("of a damaged job alone, w3 got %t and error %v", found, err)
	}
}

// contended is a store in which another writer is always faster with a job.
type contended struct {
	workqueue.Store
	tries int
}

func (s *contended) UpdateWork(context.Context, model.Job) (model.Job, error) {
	s.tries++
	return model.Job{}, lifecycle.ErrConflict
}

// A claim of a job that is written all the time ends, and takes no second one.
func TestAClaimEnds(t *testing.T) {
	w := newWorkWorld(t)
	w.submit("render", "a", "b")
	s := &contended{Store: w.work.Store}
	w.work.Store = s
	_, found, err := w.fleet.ClaimWork(t.Context(), "render", "w", "", workBegan)
	if found || !errors.Is(err, lifecycle.ErrUnavailable) || s.tries != 11 {
		t.Errorf("got %t and error %v after %d tries, want unavailable after 11", found, err, s.tries)
	}
}
