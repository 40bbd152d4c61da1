package main

import (
	"context"
	"fmt"

	"github.com/remuda-ci/remuda/internal/demo/cache/meter"
	"github.com/remuda-ci/remuda/internal/demo/cache/verdict"
	"github.com/remuda-ci/remuda/internal/demo/stage"
	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

const repository = "acme/shop"

// demo is what happened so far.
type demo struct {
	*stage.Stage
	workflow string
	meter    *meter.Meter
	progress *progress
	steps    []verdict.Step
	// mechanism is how the hosts make views.
	mechanism string
}

// Where runs come from.
var (
	ofMain        = local.Origin{Event: "push"}
	ofPullRequest = local.Origin{Event: "pull_request"}
)

// play makes the runs, one after the other. Only one host is free at a time, so that it is known which one a run gets.
func (d *demo) play(ctx context.Context) error {
	one, err := d.step(ctx, act{runID: "1001", what: "first run"}, "")
	if err != nil {
		return err
	}
	if _, err := d.step(ctx, act{runID: "1002", what: "second run", warm: true, marks: []string{"1001"}}, one); err != nil {
		return err
	}
	if err := d.elsewhere(ctx, one); err != nil {
		return err
	}
	pull := act{runID: "1005", what: "pull request", from: ofPullRequest, warm: true, marks: []string{"1001", "1002"}}
	if _, err := d.step(ctx, pull, one); err != nil {
		return err
	}
	after := act{runID: "1006", what: "main again", warm: true, marks: []string{"1001", "1002"}} // and not 1005
	if _, err := d.step(ctx, after, one); err != nil {
		return err
	}
	if err := d.evict(one); err != nil {
		return err
	}
	if _, err := d.step(ctx, act{runID: "1007", what: "after eviction"}, one); err != nil {
		return err
	}
	_, err = d.step(ctx, act{runID: "1008", what: "the run after it", warm: true, marks: []string{"1007"}}, one)
	return err
}

// elsewhere makes two runs on another host, while a run without jobs has the first one. The other host is ended then.
func (d *demo) elsewhere(ctx context.Context, one string) error {
	const holder = "1900"
	held, _, err := d.provision(ctx, holder)
	if err != nil {
		return err
	}
	if held != one {
		return fmt.Errorf("run %s got %s, and only %s was free", holder, held, one)
	}
	d.Say("\nRun %s has the first host now, so the next run gets another one. Caches are of one host each.", holder)
	other, err := d.step(ctx, act{runID: "1003", what: "another host"}, "")
	if err != nil {
		return err
	}
	if _, err := d.step(ctx, act{runID: "1004", what: "that host again", warm: true, marks: []string{"1003"}}, other); err != nil {
		return err
	}
	const why = "the demo needs it no more"
	if _, err := d.Fleet.TerminateInstance(ctx, &remudav1.TerminateInstanceRequest{InstanceId: other, Reason: why}); err != nil {
		return fmt.Errorf("end the other host: %w", err)
	}
	_, err = d.release(ctx, holder)
	return err
}

// evict deletes the caches of an idle host, as an operator would.
func (d *demo) evict(host string) error {
	store, err := d.store(host)
	if err != nil {
		return err
	}
	held, err := store.Held()
	if err != nil {
		return err
	}
	d.Say("")
	for _, c := range held {
		if err := store.Remove(c.Key); err != nil {
			return err
		}
		d.Say("The cache %s of %s is deleted: %s", c.Name, host, verdict.MB(int64(c.Bytes)))
	}
	return nil
}
