package world

import (
	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
	"github.com/remuda-ci/remuda/internal/lifecycle/slots"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// The events of a world, which it passes to its observers (World.Observe): the rules check
// them, and a story tells them. They come just after the effect unless it says "before".
type (
	// RecordWritten is a write of a host's record. Before has version 0 if the record is new.
	RecordWritten struct{ Before, After lifecycle.Record }
	// RequestWritten is a write of a request. Before has version 0 if the request is new.
	RequestWritten struct{ Before, After lifecycle.Request }
	// WorkWritten is a write of a job of the service. Before has version 0 if the job is new.
	WorkWritten struct{ Before, After model.Job }
	// WorkerWritten is a write of a worker of the service. Before has version 0 if the worker is new.
	WorkerWritten struct{ Before, After model.Worker }
	// JobWritten is a write of a job that asks for a job pool. Before has version 0 if the job is new.
	JobWritten struct{ Before, After lifecycle.Job }
	// SlotsWritten is a write of the slots of a job pool. Before has version 0 if there were none.
	SlotsWritten struct{ Before, After slots.Table }
	// RowReplaced is a row that was lost, or has an older state again.
	// It is of the host, of the request, of the job or of its webhook, of the service's job or worker, the slots of the pool, or the ledger of a limit.
	RowReplaced struct {
		HostKey, RequestID string
		JobID              int64
		WorkID, WorkerID   string
		Pool, Ledger       string
	}
	// ReportLost is a report that the store had.
	ReportLost struct{ HostKey string }
	// StateLost is the agent's memory, which its host has no more.
	StateLost struct{ HostKey string }
	// HoldWritten is a write of the fleet's hold.
	HoldWritten struct{ Before, After fleethold.Hold }
	// PauseWritten is a write of the pause of a pool.
	PauseWritten struct{ Before, After pause.Pause }
	// ReadingWritten is a new reading of a host's time.
	ReadingWritten struct{ Reading meter.Reading }
	// Claimed is a claim that took effect, with the record as it was. RecordWritten follows.
	Claimed struct {
		Claim  lifecycle.Claim
		Before lifecycle.Record
	}
	// ReportWritten is a write of a report, by an agent or by a job that forged it.
	ReportWritten struct{ Report lifecycle.Report }
	// Reporting comes before an agent writes its report.
	Reporting struct {
		Host   *Host
		Report lifecycle.Report
	}

	// Launched is a launch that the cloud has made.
	Launched struct {
		Order    lifecycle.LaunchOrder
		Machines []lifecycle.Machine
	}
	// LaunchBooked follows Launched once the new machines are in the world.
	LaunchBooked struct{}
	// Appearing comes before a new machine is in the world.
	Appearing struct{ Machine lifecycle.Machine }
	// Described is a description of machines, as the caller gets it.
	Described struct {
		Machines []lifecycle.Machine
		Err      error
	}
	// Terminating comes before a call ends a machine, whether that exists or not.
	Terminating struct{ InstanceID string }
	// Stopping comes before a call stops a machine, whether that exists or not.
	Stopping struct {
		InstanceID string
		Hibernate  bool
	}
	// Hibernating comes before the memory of a machine is written to its disk.
	Hibernating struct{ Machine *Machine }
	// ReplacingRoot comes before a call has the root volume of a machine replaced, whether that exists or not.
	ReplacingRoot struct{ InstanceID string }
	// Ending comes before the end of a living machine.
	Ending struct{ Machine *Machine }

	// Received is what came from a queue.
	Received struct {
		Deliveries []lifecycle.Delivery
		Err        error
	}
	// DeletingRunner comes before a call deletes a registration.
	DeletingRunner struct{ Runner *Runner }
	// LabelsSet is a change of a runner's labels.
	LabelsSet struct {
		Runner *Runner
		Labels []string
	}
	// Scaling comes before the desired count of the service is set.
	Scaling struct{ Desired int }
	// Called is any other remote call, as a sentence.
	Called struct {
		What string
		Err  error
	}

	// Registering comes before a host registers.
	Registering struct {
		Host       *Host
		Assignment agent.Assignment
	}
	// Listening is a listener that has reached GitHub.
	Listening struct{ Runner *Runner }
	// Cleaning comes before a host cleans up.
	Cleaning struct{ Host *Host }
	// CachesCleaned is the end of the views of a host by a clean-up.
	CachesCleaned struct {
		Host       *Host
		Assignment int64
		Views      []*View
		// Deleted: docker's store had images of runs, and lost them.
		Deleted bool
	}
	// CacheDropped is a cache that an operator dropped on all hosts of a pool.
	CacheDropped struct{ Pool, Key string }
	// PoweringOff comes before a host ends itself.
	PoweringOff struct {
		Host *Host
		Why  string
	}
	// JobBegins comes before a job begins on a host.
	JobBegins struct {
		Host *Host
		Job  *Job
	}
	// JobRefused is a job that the host's job-started hook refused.
	JobRefused struct {
		Host *Host
		Job  *Job
	}
)
