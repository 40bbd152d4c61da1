package dynamo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
)

// The history is one chain of items, each with the events of one operation. A watcher reads on from where it
// was, so no item may ever appear before a place that a watcher has passed. Clocks cannot promise that: those
// of two replicas differ, and a write may take its time. A chain can: an item is written at the place after
// the last one, under the condition that this place is free. A replica that finds it taken looks for the end
// and tries again. So when an item can be seen, all before it can.
//
// A replica appends one item at a time, and remembers the end when it wrote it
// itself. A single replica thus needs one call for each item.

// chain is the subject of the chain's items.
const chain = "fleet"

const (
	// The place of an item has 16 hexadecimal digits, and an event's id 4 more, for where it is in its item.
	placeDigits, indexDigits = 16, 4
	// endKnown is how long a replica takes its own last item for the end without
	// reading. It must be much shorter than chainRests.
	endKnown = time.Hour
	// chainRests is how little of its retention the last item has left when the chain goes on elsewhere, at a
	// place that the clock gives: once DynamoDB has removed that item, the end could not be found. Twelve
	// hours without an event have passed then, so no replica takes an older item for the end.
	chainRests = store.EventRetention / 2
)

// Losing a place is no sign of trouble: another replica made progress. So there are
// many tries, and the waits between them stay those of a third one, 200 ms at most.
const racingTries, racingWait = 50, 3

// history is what this replica knows of the chain.
type history struct {
	// turn holds one value; the goroutine that takes it appends.
	turn chan struct{}
	// end is the place of the last item, and own that of this replica's last.
	end, own uint64
	// endedAt is when this replica wrote the item at end; zero: not known.
	endedAt time.Time
	// raced: others append too, so that it is cheaper to look for the end first.
	raced bool
}

func newHistory() history {
	h := history{turn: make(chan struct{}, 1)}
	h.turn <- struct{}{}
	return h
}

// append writes events as the next item of the chain, and returns them with their ids.
func (s *Store) append(ctx context.Context, what string, batch []event) ([]event, error) {
	h := &s.history
	select {
	case <-h.turn:
		defer func() { h.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, &lifecycle.UnavailableError{What: what, Err: ctx.Err()}
	}
	look := h.raced || s.now().Sub(h.endedAt) >= endKnown
	for try := 1; ; try++ {
		if look {
			if err := s.findEnd(ctx, what); err != nil {
				return nil, err
			}
		}
		written, err := s.appendAt(ctx, what, h.end+1, batch)
		if !errors.Is(err, errCondition) {
			return written, err
		}
		h.raced, look = true, true
		if try == racingTries {
			return nil, &lifecycle.UnavailableError{What: what, Err: errRaced}
		}
		if err := pause(ctx, what, s.client.Options().Retryer, min(try, racingWait)); err != nil {
			return nil, err
		}
	}
}

// appendAt writes events at a place: errCondition if it is taken.
func (s *Store) appendAt(ctx context.Context, what string, at uint64, batch []event) ([]event, error) {
	h := &s.history
	h.endedAt = time.Time{} // until it is written for sure
	written := make([]event, len(batch))
	for i, e := range batch {
		e.ID = fmt.Sprintf("%0*x%0*x", placeDigits, at, indexDigits, i)
		written[i] = e
	}
	it, err := historyItem(chain, fmt.Sprintf("%0*x", placeDigits, at), written)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if err := s.put(ctx, what, events, it, isNone(subject)); err != nil {
		return nil, err
	}
	h.end, h.own, h.endedAt = at, at, s.now()
	return written, nil
}

// findEnd looks for the last item of the chain.
func (s *Store) findEnd(ctx context.Context, what string) error {
	last, err := s.lastItem(ctx, what)
	if err != nil {
		return err
	}
	h := &s.history
	if last == nil {
		return s.settle(ctx, what, 0)
	}
	if h.end, err = strconv.ParseUint(textOf(last, eventID), 16, 64); err != nil {
		return fmt.Errorf("%s: %w", what, damagedError{eventID})
	}
	h.raced = h.own != 0 && h.own != h.end
	if s.now().Add(chainRests).After(expiryOf(last)) {
		return s.settle(ctx, what, h.end)
	}
	return nil
}

// begun is the lease that says where the chain was begun last: its holder is that place.
const begun = "history"

// settle finds where the chain goes on when its end does not say it: at one place for all replicas, whatever
// their clocks say. Two places at once would make two chains, and watchers would see only the later one. A
// place that another replica settled counts if nothing was written there yet.
func (s *Store) settle(ctx context.Context, what string, last uint64) error {
	// A place by the clock is behind every place that was ever taken: an hour has room for 4 billion items.
	byClock := placeAt(s.now())
	for range racingTries {
		l, err := s.Lease(ctx, begun)
		if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
			return fmt.Errorf("%s: %w", what, err)
		}
		place, err := strconv.ParseUint(cmp.Or(l.Holder, "0"), 16, 64)
		if err != nil {
			return fmt.Errorf("%s: lease %s: %w", what, begun, damagedError{"holder"})
		}
		// What was written behind an old place may have been removed, and
		// watchers have passed it; of what is younger than chainRests nothing is.
		if place > last && place > placeAt(s.now().Add(-chainRests)) {
			s.history.end = place
			return nil
		}
		s.history.end = max(last+1, byClock)
		l.Name, l.Holder = begun, fmt.Sprintf("%0*x", placeDigits, s.history.end)
		if _, err = s.TakeLease(ctx, l); !errors.Is(err, lifecycle.ErrConflict) {
			return err
		}
	}
	return &lifecycle.UnavailableError{What: what, Err: errRaced}
}

// placeAt is a place by the clock.
func placeAt(t time.Time) uint64 { return uint64(t.Unix()/int64(time.Hour/time.Second))<<32 - 1 }

// lastItem is the place and expiry of the last item; nil if there is none.
func (s *Store) lastItem(ctx context.Context, what string) (item, error) {
	out, err := s.client.Query(ctx, &dynamodb.QueryInput{
		TableName: s.table(events), ConsistentRead: sdk.Bool(true), // or an old end
		KeyConditionExpression:    sdk.String("#subject = :chain"),
		ProjectionExpression:      sdk.String("#id, #expiresAt"),
		ExpressionAttributeNames:  map[string]string{"#subject": subject, "#id": eventID, "#expiresAt": expiresAt},
		ExpressionAttributeValues: item{":chain": text(chain)},
		ScanIndexForward:          sdk.Bool(false), Limit: sdk.Int32(1),
	})
	if err != nil {
		return nil, s.failed(what, events, err)
	}
	if len(out.Items) == 0 {
		return nil, nil
	}
	return out.Items[0], nil
}

// historyItem is an item of the history. It expires with its last event.
func historyItem(of, at string, batch []event) (item, error) {
	var end time.Time
	for _, e := range batch {
		if t := e.At.Add(store.EventRetention); t.After(end) {
			end = t
		}
	}
	it, err := encode(struct {
		Events []event `json:"events"`
	}{batch}, end)
	if err != nil {
		return nil, err
	}
	it[subject], it[eventID] = text(of), text(at)
	if run, one := runOf(batch); one {
		it[runKey] = text(run)
	}
	return it, nil
}

// runOf is the run that all events are of; false if there is no such.
func runOf(batch []event) (string, bool) {
	for _, e := range batch {
		if e.RunID == "" || e.RunID != batch[0].RunID || e.Repository != batch[0].Repository {
			return "", false
		}
	}
	return lifecycle.RunKey(batch[0].Repository, batch[0].RunID), true
}
