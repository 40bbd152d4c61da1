package op

import (
	"context"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Subject says what an operation, or a stretch of time, is about. Everything but its name may be empty.
type Subject struct {
	// Name is what is done: "provision", "sweep due".
	Name string
	// Repository, RunID and RunAttempt are the workflow run that it is done for.
	Repository, RunID string
	RunAttempt        int
	// RequestID, Pool, InstanceID and JobID are the things that it is done with.
	RequestID, Pool, InstanceID string
	JobID                       int64
}

// Described is an operation that says what it is about.
type Described interface {
	Op
	Subject() Subject
}

// Tracer follows what is done, for people who look for where time goes.
type Tracer interface {
	// Begin begins to follow an operation. Its steps get the context, and end gets its error.
	Begin(ctx context.Context, of Subject) (_ context.Context, end func(error))
	// Past notes a stretch of time that is over.
	Past(of Subject, from, to time.Time)
}

// Begin begins to follow an operation, if there is a tracer; see Tracer.
func (d *Driver) Begin(ctx context.Context, of Subject) (context.Context, func(error)) {
	if d.Tracer == nil {
		return ctx, func(error) {}
	}
	return d.Tracer.Begin(ctx, of)
}

// Past notes a stretch of time that is over, if there is a tracer; see Tracer. It may have no length, since GitHub's times are whole seconds.
func (d *Driver) Past(of Subject, from, to time.Time) {
	if d.Tracer != nil && !from.IsZero() && !to.Before(from) {
		d.Tracer.Past(of, from, to)
	}
}

// BeginOp is Begin for an operation that may say what it is about.
func (d *Driver) BeginOp(ctx context.Context, o Op) (context.Context, func(error)) {
	described, ok := o.(Described)
	if !ok {
		return ctx, func(error) {}
	}
	return d.Begin(ctx, described.Subject())
}

// HostSubject is what is done with a host for the run that it has.
func HostSubject(name string, r lifecycle.Record) Subject {
	return Subject{
		Name: name, Repository: r.Repository, RunID: r.RunID, RunAttempt: r.RunAttempt,
		RequestID: r.RequestID, Pool: r.Pool, InstanceID: r.InstanceID,
	}
}

// JobSubject is what is done for a job of a workflow.
func JobSubject(name string, j lifecycle.Job) Subject {
	return Subject{Name: name, Repository: j.Repository, RunID: j.RunID, RunAttempt: j.RunAttempt, Pool: j.Pool, JobID: j.ID}
}
