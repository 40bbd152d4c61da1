// Package logkey names the keys of log lines. A key means the same thing in every room, so that one
// search finds all lines about a host or a run; internal/words_test.go refuses any other key.
package logkey

// What a line is about. Values are ids and names as the API shows them.
const (
	Instance   = "instance"   // EC2 instance id of a host, or its host key where no id is known
	Instances  = "instances"  // several instance ids
	Run        = "run"        // workflow run id
	Request    = "request"    // request id of a Provision
	Repository = "repository" // "owner/name"
	Owner      = "owner"      // owner of repositories
	Budget     = "budget"     // budget of a repository or an owner
	Pool       = "pool"       // host pool or job pool
	Caches     = "caches"     // names of caches
	Kept       = "kept"       // whether a cache is kept
	Cache      = "cache"      // name of a cache
	CacheKey   = "cache_key"  // its key on its host
	Slot       = "slot"       // number of a job pool's slot
	Job        = "job"        // id of a workflow job or of a service's job
	Runner     = "runner"     // name or id of a registration on GitHub
	Service    = "service"    // runner service
	Worker     = "worker"     // worker of a service
	Delivery   = "delivery"   // X-GitHub-Delivery of a webhook
	Message    = "message"    // id of a queue message
	Replica    = "replica"    // a controld among several
	App        = "app"        // GitHub App
	Caller     = "caller"     // who called, as the admission saw it
)

// What happened and why.
const (
	Error      = "error"      // an error's text
	Reason     = "reason"     // a sentence: why something was decided or refused
	Code       = "code"       // a reason code, or a code of a dependency, such as SQS's
	Warning    = "warning"    // a sentence for operators
	Action     = "action"     // lifecycle.Action, or a webhook's action
	Move       = "move"       // policy.MoveKind
	Event      = "event"      // GitHub event, such as workflow_job
	Notice     = "notice"     // notice.Kind
	Result     = "result"     // what came of an operation
	Outcome    = "outcome"    // a word for the same, counted in metrics
	Op         = "op"         // name of a background operation
	Call       = "call"       // remote call made or served
	Method     = "method"     // gRPC or HTTP method
	Status     = "status"     // gRPC or HTTP status
	ID         = "id"         // id of a served call
	Cause      = "cause"      // lifecycle.Cause, or why a background operation did not start
	Signal     = "signal"     // lifecycle.Signal
	State      = "state"      // state of a record
	Assignment = "assignment" // Record.Assignment
	Effect     = "effect"     // agent.Effect
	Step       = "step"       // step of a reset
	From       = "from"       // state before
	To         = "to"         // state or number after
	Sweep      = "sweep"      // sweep that decided
	Decision   = "decision"   // allowed or refused
	Panic      = "panic"      // value of a recovered panic
	Stack      = "stack"      // its stack
)

// Numbers, times and places.
const (
	At        = "at"        // the moment that the line is about
	Since     = "since"     // since when it has been so
	Until     = "until"     // until when it stays so
	After     = "after"     // duration until something happened
	Took      = "took"      // duration of a call
	Offset    = "offset"    // correction of a clock
	MaxAge    = "max_age"   // older than this is not used
	Hosts     = "hosts"     // number of hosts
	Count     = "count"     // number of whatever the message names
	Limit     = "limit"     // how many at most
	Searched  = "searched"  // how many of Count were read
	Failures  = "failures"  // failures in a row
	Bytes     = "bytes"     // size
	Guard     = "guard"     // what keeps hosts or machines from being ended when many fail at once
	Busy      = "busy"      // whether a job runs
	Version   = "version"   // of a program, a record or a template
	Previous  = "previous"  // the value before
	Queue     = "queue"     // name of a queue
	Class     = "class"     // resource class
	Usage     = "usage"     // usage class
	Table     = "table"     // database table
	Row       = "row"       // key of a row
	Template  = "template"  // launch template
	Image     = "image"     // id of an image
	Field     = "field"     // name of a field
	Fields    = "fields"    // names of fields
	File      = "file"      // path
	Directory = "directory" // path of a directory
	Address   = "address"   // network address
	GRPC      = "grpc"      // listening address of the API
	HTTP      = "http"      // listening address of HTTP
	Line      = "line"      // line of a program's output
	Issuer    = "issuer"    // URL of an issuer of ID tokens
	Region    = "region"    // AWS region
	Zone      = "zone"      // availability zone
	Type      = "type"      // instance type
	Lifecycle = "lifecycle" // instance-life-cycle, as IMDS has it
)
