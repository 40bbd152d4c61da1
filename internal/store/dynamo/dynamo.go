// Package dynamo is the state store on DynamoDB.
//
// A row is an item whose attributes have the row's JSON names, so that conditions, policies and people can read
// them. Beside them it has the attributes that its key and its indexes need (rows.go, listing.go), and a writeId
// (put.go). Attributes of many KB are compressed.
//
// Where reads are consistent, and why:
//
//   - Reads by key, as the port asks: what they return is decided on and written back, and a row that an old read
//     leaves out would be taken for lost. So are the rows that an index names, unless they are only shown.
//   - Lease: an old version would make a live holder look dead.
//   - The history: its end, since an old one is no end any more, and what a
//     watcher reads, which must miss nothing (history.go, EventsSince).
//   - A host's own record when its agent asks for it, before it ends itself.
//
// All others are eventually consistent, at half the price: reports, which are
// up to a heartbeat old anyway, and the listings for people.
package dynamo

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/store"
)

// Options of New. The zero value takes the defaults.
type Options struct {
	// Prefix begins the name of every table; default "remuda".
	Prefix string
	// Tags are those of the owner, for the tables that Ensure makes or finds, beside the fleet's own.
	Tags   map[string]string
	Logger hclog.Logger
	// Now is the clock that rows expire by; default time.Now. DynamoDB itself
	// removes expired rows up to days late, so they are hidden here.
	Now func() time.Time
}

// Store keeps its rows in tables that it shares with other processes.
type Store struct {
	// Store has the typed methods.
	store.Store

	client *dynamodb.Client
	prefix string
	tags   map[string]string // of a table
	log    hclog.Logger
	now    func() time.Time

	// writer is this process's own, and writes counts: see writeID.
	writer string
	writes atomic.Int64

	history history
	// unsound are the hosts whose reports cannot be read, as far as told, and
	// damaged our own rows that cannot.
	unsound, damaged sync.Map
}

// New returns the store behind the client. It makes no call: Ensure makes the tables.
func New(client *dynamodb.Client, o Options) *Store {
	o.Logger = cmp.Or(o.Logger, hclog.NewNullLogger())
	if o.Now == nil {
		o.Now = time.Now
	}
	prefix := cmp.Or(o.Prefix, "remuda")
	s := &Store{client: client, prefix: prefix, tags: aws.FleetTags(prefix, o.Tags), log: o.Logger, now: o.Now, writer: rand.Text()[:12], history: newHistory()}
	s.Store = store.New(s)
	return s
}

// table is the full name of one of our tables.
func (s *Store) table(name string) *string {
	full := s.prefix + "-" + name
	return &full
}

// writeID is unique to one write, however often the SDK sends it.
func (s *Store) writeID() string { return s.writer + strconv.FormatInt(s.writes.Add(1), 36) }

func lost(what string) error     { return fmt.Errorf("%s: %w", what, lifecycle.ErrConflict) }
func notFound(what string) error { return fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound) }
func exists(what string) error   { return fmt.Errorf("%s: %w", what, lifecycle.ErrExists) }

func expired(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// failed is the error of a call to a table. What names a table or a schema that
// is not as it should be says what to do.
func (s *Store) failed(what, table string, err error) error {
	name := *s.table(table)
	switch aws.Code(err) {
	case "ResourceNotFoundException":
		return aws.Refused(what, err, fmt.Sprintf(
			"there is no table %s in %s: run Refresh, or `controld config check --aws` to see what is missing", name, s.client.Options().Region))
	case "ValidationException":
		return aws.Refused(what, err, fmt.Sprintf(
			"table %s is perhaps not as it should be: `controld config check --aws` compares it", name))
	}
	return aws.Wrap(what, err)
}

// logDamaged logs a row of ours that cannot be read, once.
func (s *Store) logDamaged(table, key string, err error) {
	if _, logged := s.damaged.LoadOrStore(table+" "+key, true); !logged {
		s.log.Error("leaving out a row that cannot be read: repair it or delete it", logkey.Table, *s.table(table), logkey.Row, key, logkey.Error, err)
	}
}

// Reasons to give up a call that may succeed at another time.
var (
	errThrottled = errors.New("the table takes no more for now")
	errRaced     = errors.New("others were faster each time")
)

// Actions are what the store calls.
func Actions() []aws.Permission {
	return []aws.Permission{
		{Action: "dynamodb:GetItem", Role: aws.RoleControld, On: aws.OnTables, Why: "reads one record, request, job, webhook, lease or service, and the turns of a pool"},
		{Action: "dynamodb:BatchGetItem", Role: aws.RoleControld, On: aws.OnTables, Why: "reads the records, reports, requests, jobs and webhooks that it waits for or that are due"},
		{Action: "dynamodb:PutItem", Role: aws.RoleControld, On: aws.OnTables, Why: "writes records, requests, jobs, webhooks, turns, leases, services, the history and what is seen once, each under a condition"},
		{Action: "dynamodb:BatchWriteItem", Role: aws.RoleControld, On: aws.OnTables, Why: "writes the history of several runs at once"},
		{Action: "dynamodb:UpdateItem", Role: aws.RoleControld, On: aws.OnTables, Why: "claims a host in one write"},
		{Action: "dynamodb:DeleteItem", Role: aws.RoleControld, On: aws.OnTables, Why: "removes the report of a host that has ended"},
		{Action: "dynamodb:Query", Role: aws.RoleControld, On: aws.OnTables, Why: "lists by run, by pool and by due, and reads the history"},
		{Action: "dynamodb:Scan", Role: aws.RoleControld, On: aws.OnTables, Why: "reads all reports in the liveness sweep"},

		{Action: "dynamodb:DescribeTable", Role: aws.RoleRefresh, On: aws.OnTables, Why: "compares the tables and indexes with what they should be"},
		{Action: "dynamodb:CreateTable", Role: aws.RoleRefresh, On: aws.OnTables, Why: "makes a table that is missing"},
		{Action: "dynamodb:UpdateTable", Role: aws.RoleRefresh, On: aws.OnTables, Why: "adds an index that is missing, makes a table on-demand and protects it from deletion"},
		{Action: "dynamodb:ListTagsOfResource", Role: aws.RoleRefresh, On: aws.OnTables, Why: "looks which tags a table has"},
		{Action: "dynamodb:TagResource", Role: aws.RoleRefresh, On: aws.OnTables, Why: "gives a table the tags of the fleet and its owner; CreateTable with tags needs it too"},
		{Action: "dynamodb:DescribeTimeToLive", Role: aws.RoleRefresh, On: aws.OnTables, Why: "looks whether expired rows are removed"},
		{Action: "dynamodb:UpdateTimeToLive", Role: aws.RoleRefresh, On: aws.OnTables, Why: "has expired rows removed"},
		{Action: "dynamodb:DescribeContinuousBackups", Role: aws.RoleRefresh, On: aws.OnTables, Why: "looks whether there is point-in-time recovery"},
		{Action: "dynamodb:UpdateContinuousBackups", Role: aws.RoleRefresh, On: aws.OnTables, Why: "turns on point-in-time recovery"},

		{Action: "dynamodb:GetItem", Role: aws.RoleHost, On: aws.OnInstances, Why: "the agent reads its own record"},
		{Action: "dynamodb:UpdateItem", Role: aws.RoleHost, On: aws.OnReports, Why: "the agent writes its own report"},
	}
}
