package runner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
)

// dispatcher takes one job from its message to the end of its worker, in steps that each cost a call over the network: acknowledge
// and acquire (actions/runner 2.336, src/Runner.Listener/Runner.cs 690-736), then the line "Running job:", the first renewal of the
// job's lock, and only then the worker (src/Runner.Listener/JobDispatcher.cs 377-436 and 477).
//
// A listener that is stopped before there is a worker tells the server nothing (JobDispatcher.cs 408-419 and 1124-1128): a job that
// was acquired fails as lost when its lock has run out.
type dispatcher struct {
	listener *listener
	id       int64
	cancel   context.CancelFunc
	ended    chan struct{}

	mu     sync.Mutex
	worker *workerProcess // nil until it has been started
	told   bool           // to end the job, before there was a worker

	// These are read after ended is closed.
	job   protocol.Job
	taken bool // the job was acquired, or is gone: a run-once listener is done
}

// The first renewal of a lock is tried this often, with a pause between tries (JobDispatcher.cs 751 and 799-820).
const (
	firstRenewals   = 6
	firstRenewPause = time.Second
	firstRenewMore  = 9 * time.Second // at random, beside firstRenewPause
)

// renewLimit is how long a renewal is tried: GitHub's lock of ten minutes and five more (JobDispatcher.cs 809-810).
const renewLimit = 15 * time.Minute

// usualRenewal is the time between renewals where the server says none (JobDispatcher.cs 775-776).
const usualRenewal = time.Minute

// dispatch begins with the message of a job.
func (l *listener) dispatch(id int64) *dispatcher {
	ctx, cancel := context.WithCancel(context.Background())
	d := &dispatcher{listener: l, id: id, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(d.ended)
		defer cancel()
		d.run(ctx)
	}()
	return d
}

// done is closed when the job has ended for this listener; of no job it never is.
func (d *dispatcher) done() <-chan struct{} {
	if d == nil {
		return nil
	}
	return d.ended
}

// tell passes a message on to the worker. Without one it ends the dispatch.
func (d *dispatcher) tell(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.worker == nil {
		d.told = true
		d.cancel()
		return
	}
	d.worker.tell(text)
}

func (d *dispatcher) run(ctx context.Context) {
	l := d.listener
	if err := d.call(ctx, protocol.PathAck, nil); codeOf(err) == http.StatusNotFound && l.settings.Ephemeral {
		d.taken = true // Runner.cs 699-704: it exits with 0
		return
	}
	if err := insist(ctx, connectTime, func() error { return d.call(ctx, protocol.PathAcquire, &d.job) }); err != nil {
		fmt.Fprintf(l.errOut, "%s: Cannot acquire job %d: %v\n", now(), d.id, err)
		return
	}
	d.taken = true
	fmt.Fprintf(l.out, "%s: Running job: %s\n", now(), d.job.Name)
	if !d.renewFirst(ctx) {
		return
	}
	if err := d.startWorker(); err != nil {
		l.failJob(d.job, fmt.Sprintf("The worker could not be started: %v", err))
		return
	}
	if d.worker == nil {
		return
	}
	go d.renew(ctx)
	<-d.worker.done()
}

// startWorker starts no worker for a job that was ended by then.
func (d *dispatcher) startWorker() (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.told {
		d.worker, err = startWorker(d.listener.root, d.job, d.listener.errOut)
	}
	return err
}

func (d *dispatcher) call(ctx context.Context, path string, into any) error {
	_, err := d.listener.client.call(ctx, callTime, http.MethodPost, fmt.Sprintf(path, d.id), nil, nil, into)
	return err
}

// renewFirst reports whether the job may be given to a worker.
func (d *dispatcher) renewFirst(ctx context.Context) bool {
	for try := 0; try < firstRenewals; try++ {
		switch err := d.renewOnce(ctx); {
		case err == nil:
			return true
		case !passing(err):
			return false
		}
		select {
		case <-time.After(firstRenewPause + rand.N(firstRenewMore)):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

func (d *dispatcher) renewOnce(ctx context.Context) error {
	c := newClient(d.listener.settings.ServerURL, d.job.Token)
	defer c.http.CloseIdleConnections()
	_, err := c.call(ctx, callTime, http.MethodPost, fmt.Sprintf(protocol.PathRenew, d.id), nil, nil, nil)
	return err
}

// renew keeps the job's lock until ctx ends. A lock that cannot be kept ends the job (JobDispatcher.cs 612-646).
func (d *dispatcher) renew(ctx context.Context) {
	every := d.listener.settings.Times.Renew
	if every <= 0 {
		every = usualRenewal
	}
	for {
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
		err := insist(ctx, renewLimit, func() error { return d.renewOnce(ctx) })
		if err != nil && ctx.Err() == nil {
			d.tell(tellCancel)
			return
		}
	}
}
