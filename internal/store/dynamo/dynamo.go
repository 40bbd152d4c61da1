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
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

// Options of New. The zero value takes the defaults.
type Options struct {
	// Prefix begins the name of every table; default "remuda".
	Prefix string
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
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{client: client, prefix: cmp.Or(o.Prefix, "remuda"), log: o.Logger, now: o.Now, writer: rand.Text()[:12], history: newHistory()}
	s.Store = store.New(s)
	return s
}

// table is the full name of one of our tables.
func (s *Store) table(name string) *string {
	full := s.prefix + "-" + name
	return &full
}

// writeID is unique to one write, however often the SDK sends it.
func (s *Store) writeID() string {
	return s.writer + strconv.FormatInt(s.writes.Add(1), 36)
}

func lost(what string) error     { return fmt.Errorf("%s: %w", what, lifecycle.ErrConflict) }
func notFound(what string) error { return fmt.Errorf("%s: %w", what, lifecycle.ErrNotFound) }
func exists(what string) error   { return fmt.Errorf("%s: %w", what, lifecycle.ErrExists) }

func expired(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }
