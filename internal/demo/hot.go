package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/demo/stage"
	"github.com/remuda-ci/remuda/internal/retry"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// hotHosts is how many hosts listen before a run claims them. Each of as many runs gets one, so that there is a median.
const hotHosts = 3

// fillHotPool has a run use hosts of the hot pool and give them back, while other runs go on. They then register ahead of need and
// listen. The channel gets the result.
func (d *demo) fillHotPool(ctx context.Context) <-chan error {
	filled := make(chan error, 1)
	go func() {
		a := act{runID: "1000", pool: "hot"}
		err := d.provision(ctx, &a, hotHosts)
		if err == nil {
			err = d.release(ctx, &a)
		}
		filled <- err
	}()
	return filled
}

// hot serves one run after another with a host that listens already, and then releases them all.
func (d *demo) hot(ctx context.Context, filled <-chan error) error {
	if err := <-filled; err != nil {
		return fmt.Errorf("fill the hot pool: %w", err)
	}
	if err := d.awaitHot(ctx); err != nil {
		return err
	}
	var acts []*act
	for n := range hotHosts {
		a := &act{name: "hot", runID: strconv.Itoa(1004 + n), pool: "hot", workflow: "go-build.yml"}
		d.Say("\nRun %s (hot): provisioning 1 host for %s ...", a.runID, a.workflow)
		if err := d.serve(ctx, a, 1); err != nil {
			return err
		}
		if a.reused != 1 || a.registered+a.configured != 0 {
			return fmt.Errorf("the hot run %s reused %d hosts and there were %d calls of config.sh for it, want 1 and 0", a.runID, a.reused, a.configured)
		}
		acts = append(acts, a)
	}
	var wait sync.WaitGroup
	errs := make([]error, len(acts))
	for i, a := range acts {
		wait.Go(func() { errs[i] = d.release(ctx, a) })
	}
	wait.Wait()
	for i, a := range acts {
		if errs[i] != nil {
			return errs[i]
		}
		d.acts = append(d.acts, *a)
	}
	d.Say("  released: %d hosts deregistered, cleaned and pooled", hotHosts)
	return d.endHot(ctx, acts)
}

// endHot waits until the hosts of the hot pool listen again, and ends them by order.
func (d *demo) endHot(ctx context.Context, acts []*act) error {
	if err := d.awaitListening(ctx); err != nil {
		return err
	}
	d.Say("  they listen again, under new names")
	const why = "the demo needs it no more"
	for _, a := range acts {
		_, err := d.Fleet.TerminateInstance(ctx, &remudav1.TerminateInstanceRequest{InstanceId: a.hosts[0], Reason: why})
		if err != nil {
			return fmt.Errorf("end a hot host: %w", err)
		}
		d.Say("  %s is terminated by order: %s", a.hosts[0], why)
	}
	return nil
}

// awaitHot waits until every host of the hot pool is hot. A sweep that finds that it listens makes it so, unless the Release that is still
// followed has done so already; in the demo a Refresh makes every sweep.
func (d *demo) awaitHot(ctx context.Context) error {
	began := time.Now()
	if err := d.awaitListening(ctx); err != nil {
		return err
	}
	if _, err := d.Fleet.Refresh(ctx, &remudav1.RefreshRequest{}); err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	d.Say("\n%d hosts of another pool have registered and listen, for runs that are not known yet (waited %s for them)", hotHosts, stage.Seconds(time.Since(began)))
	return nil
}

// awaitListening waits until the agents of the hot pool say that their runners listen.
func (d *demo) awaitListening(ctx context.Context) error {
	for {
		listed, err := d.Fleet.ListInstances(ctx, &remudav1.ListInstancesRequest{States: []remudav1.State{remudav1.State_STATE_IDLE}})
		if err != nil {
			return fmt.Errorf("list the hot pool: %w", err)
		}
		listen := 0
		for _, i := range listed.GetInstances() {
			if i.GetPool() == "hot" && i.GetSignal() == remudav1.Signal_SIGNAL_UD_REG_OK {
				listen++
			}
		}
		if listen == hotHosts {
			return nil
		}
		if err := retry.Sleep(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("%w; %d of %d hosts listen", err, listen, hotHosts)
		}
	}
}
