package sqlite

import (
	"fmt"
	"math"
	"strconv"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/store/sqlite/db"
	"github.com/remuda-ci/remuda/internal/store/token"
)

// index is an order of rows as pages go through it.
type index[T any] struct {
	name  string
	texts int // how many text columns the key has
	key   func(T) key
}

// key is a row's place in an index: by a number, where the index begins with
// one, then by texts.
type key struct {
	number int64
	texts  []string
}

var (
	instancesByKey = index[lifecycle.Record]{"instances", 1, func(r lifecycle.Record) key {
		return key{0, []string{r.HostKey}}
	}}
	instancesByRun = index[lifecycle.Record]{"instances by run", 1, func(r lifecycle.Record) key {
		return key{0, []string{r.HostKey}}
	}}
	instancesByPool = index[lifecycle.Record]{"instances by pool", 1, func(r lifecycle.Record) key {
		return key{db.Nanos(r.PooledAt), []string{r.HostKey}}
	}}
	instancesByDue = index[lifecycle.Record]{"instances by due", 1, func(r lifecycle.Record) key {
		return key{db.Nanos(r.DueAt), []string{r.HostKey}}
	}}
	requestsByDue = index[lifecycle.Request]{"requests by due", 3, func(q lifecycle.Request) key {
		return key{db.Nanos(q.DueAt), []string{q.Repository, q.RunID, q.RequestID}}
	}}
	webhooksByDue = index[lifecycle.Webhook]{"webhooks by due", 1, func(w lifecycle.Webhook) key {
		return key{db.Nanos(w.DueAt), []string{w.DeliveryID}}
	}}
	jobsByDue  = index[lifecycle.Job]{"jobs by due", 1, func(j lifecycle.Job) key { return jobKey(j.DueAt, j) }}
	jobsByPool = index[lifecycle.Job]{"jobs by pool", 1, func(j lifecycle.Job) key { return jobKey(j.QueuedAt, j) }}
	workByDue  = index[model.Job]{"jobs of services by due", 2, func(j model.Job) key {
		return key{db.Nanos(j.DueAt), []string{j.Service, j.ID}}
	}}
	workByState = index[model.Job]{"jobs of a service", 1, func(j model.Job) key {
		return key{db.Nanos(j.CreatedAt), []string{j.ID}}
	}}
	workersByID  = index[model.Worker]{"workers", 1, func(w model.Worker) key { return key{0, []string{w.ID}} }}
	reportsByKey = index[string]{"reports", 1, func(hostKey string) key { return key{0, []string{hostKey}} }}
	eventsOfRun  = index[lifecycle.Event]{"events of run", 0, eventKey}
	// Never gone on behind its first page.
	eventsOfInstance = index[lifecycle.Event]{"events of instance", 0, eventKey}
	eventsByID       = index[lifecycle.Event]{"events", 0, eventKey}
)

// after returns the place where a page begins: before every row, or at the
// last row of the page before.
func (x index[T]) after(of lifecycle.PageOf) (key, error) {
	start := key{math.MinInt64, make([]string, x.texts)}
	parts, err := token.Parse(x.name, of.After, 1+x.texts)
	if err != nil || parts == nil {
		return start, err
	}
	number, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return start, token.Bad(x.name)
	}
	return key{number, parts[1:]}, nil
}

// token is that of the page after the row.
func (x index[T]) token(row T) string {
	k := x.key(row)
	return token.New(x.name, append([]string{strconv.FormatInt(k.number, 10)}, k.texts...)...)
}

// oneMore is how many rows to ask for: one more than a page holds tells whether
// it is the last.
func oneMore(of lifecycle.PageOf) int64 { return int64(min(of.Size(), math.MaxInt64-1)) + 1 }

// pageOfSound makes a page of the sound rows among those that oneMore brought;
// read counts all. A page goes on behind its last sound row, so it needs one.
func (x index[T]) pageOfSound(rows []T, read int, of lifecycle.PageOf) (lifecycle.Page[T], error) {
	p := x.page(rows, of)
	if read <= of.Size() || p.Next != "" {
		return p, nil
	}
	if len(rows) == 0 {
		return p, fmt.Errorf("list %s: %d damaged documents in a row", x.name, read)
	}
	p.Next = x.token(rows[len(rows)-1])
	return p, nil
}

// page makes a page of the rows that oneMore brought.
func (x index[T]) page(rows []T, of lifecycle.PageOf) lifecycle.Page[T] {
	p := lifecycle.Page[T]{Items: rows}
	if len(rows) > of.Size() {
		p.Items = rows[:of.Size()]
		p.Next = x.token(p.Items[of.Size()-1])
	}
	return p
}
