package dynamo

import (
	"slices"

	"github.com/remuda-ci/remuda/internal/aws"
)

// The tables, without their prefix.
const (
	instances = aws.TableInstances
	reports   = aws.TableReports
	requests  = aws.TableRequests
	jobs      = aws.TableJobs
	events    = aws.TableEvents
	leases    = aws.TableLeases
)

// The indexes. They are sparse: a row is in one while it has its attributes.
const (
	byRun  = "by-run"
	byPool = "by-pool"
	byDue  = "by-due"
	byHost = "by-host"
)

// The attributes that are keys, and those that only the store knows.
const (
	hostKey   = "hostKey"
	runKey    = "runKey" // repository and run id
	requestID = "requestId"
	leaseName = "name"
	rowKey    = "rowKey" // of the jobs table; see keyItem
	// subject and eventID are the key of the history; see history.go.
	subject = "subject"
	eventID = "id"

	runID     = "runId"
	poolKey   = "poolKey"
	pooledAt  = "pooledAt"
	dueShard  = "dueShard"
	dueAt     = "dueAt"
	hostShard = "hostShard"
	jobPool   = "pool"
	// waitingKey sorts the waiting jobs of a pool: queuedAt, then id.
	waitingKey = "waitingKey"
	// untilKey is until when an id is remembered, to the nanosecond.
	untilKey = "until"

	version = "version"
	// expiresAt is when DynamoDB may remove the row, in whole seconds as it
	// wants them, rounded up; expiresAtNano restores the exact time.
	expiresAt     = "expiresAt"
	expiresAtNano = "expiresAtNano"
	// writeID names the write that the row is of; see put.
	writeID = "writeId"
	// nextRunnerName is the runner name of the next assignment, on a row that
	// may be claimed: a claim reads nothing and so cannot compute it.
	nextRunnerName = "nextRunnerName"
)

// schema is what a table should be. Every key is a string.
type schema struct {
	name       string
	hash, sort string // sort may be empty
	indexes    []indexSchema
	// expires: rows have an expiresAt.
	expires bool
	// backup: rows that are lost with the table cannot be made again.
	backup bool
}

type indexSchema struct {
	name       string
	hash, sort string
	// whole indexes hold the rows and not only their keys.
	whole bool
}

// Indexes hold keys alone, and the rows they name are read in batches. Whole rows would save that read, 1
// unit a row, and cost a write unit, which is five times the price, in each index at every write of a row,
// two and more of a row above 1 KB. Nor are the secrets of a record in its indexes then, and what is decided
// on is never older than the index. The history is different: its rows are written once and never change, and
// each is written into an index in any case.
var schemas = []schema{
	{
		name: instances, hash: hostKey, expires: true, backup: true,
		indexes: []indexSchema{
			{name: byRun, hash: runID, sort: hostKey},
			{name: byPool, hash: poolKey, sort: pooledAt},
			{name: byDue, hash: dueShard, sort: dueAt},
			{name: byHost, hash: hostShard, sort: hostKey},
		},
	},
	{name: reports, hash: hostKey},
	{
		name: requests, hash: runKey, sort: requestID, expires: true, backup: true,
		indexes: []indexSchema{{name: byDue, hash: dueShard, sort: dueAt}},
	},
	{
		name: jobs, hash: rowKey, expires: true, backup: true,
		indexes: []indexSchema{
			{name: byRun, hash: runKey, sort: rowKey},
			{name: byPool, hash: jobPool, sort: waitingKey},
			{name: byDue, hash: dueShard, sort: dueAt},
		},
	},
	{
		name: events, hash: subject, sort: eventID, expires: true,
		indexes: []indexSchema{{name: byRun, hash: runKey, sort: eventID, whole: true}},
	},
	{name: leases, hash: leaseName},
}

// keys are the names of all key attributes, those of the indexes included.
func (t schema) keys() []string {
	names := []string{t.hash, t.sort}
	for _, x := range t.indexes {
		names = append(names, x.hash, x.sort)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}
