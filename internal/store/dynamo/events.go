package dynamo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store"
	"github.com/remuda-ci/remuda/internal/store/token"
)

type (
	event     = lifecycle.Event
	eventPage = lifecycle.Page[lifecycle.Event]
)

const (
	eventsListing      = "events"
	eventsOfRunListing = "events of run"
)

// What an item of the history holds at most. DynamoDB takes 400 KB. A write unit pays for 1 KB, so that
// larger items save calls and no units: this is what a claim of 200 hosts has to tell, with room to spare.
const (
	maxEvents     = 500
	maxEventBytes = 256 << 10
)

// AddEvents appends to the history and gives the events their ids. What is all of one run is one item, which
// the index by run has too: one call. Of what is not, each run gets a copy of its own.
func (s *Store) AddEvents(ctx context.Context, added []event) error {
	const what = "add events"
	for len(added) > 0 {
		n := fitting(added)
		written, err := s.append(ctx, what, added[:n])
		if err == nil {
			err = s.addCopies(ctx, what, written)
		}
		if err != nil {
			return err
		}
		added = added[n:]
	}
	return nil
}

// fitting is how many events go into one item: at least one.
func fitting(added []event) int {
	bytes := 0
	for n, e := range added {
		bytes += 300 + len(e.Reason) + len(e.Repository) + len(e.RunID) + len(e.RequestID) + len(e.Statement) // 300: names and the rest
		if n == maxEvents || n > 0 && bytes > maxEventBytes {
			return n
		}
	}
	return len(added)
}

// addCopies writes what was added for several runs once more, for each of them.
func (s *Store) addCopies(ctx context.Context, what string, written []event) error {
	if _, one := runOf(written); one {
		return nil
	}
	var runs []string
	byRun := map[string][]event{}
	for _, e := range written {
		if e.RunID == "" {
			continue
		}
		run := lifecycle.RunKey(e.Repository, e.RunID)
		if byRun[run] == nil {
			runs = append(runs, run)
		}
		byRun[run] = append(byRun[run], e)
	}
	rows := make([]item, len(runs))
	for i, run := range runs {
		it, err := historyItem("run "+run, byRun[run][0].ID, byRun[run])
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		rows[i] = it
	}
	return s.batchPut(ctx, what, events, rows)
}

// EventsOfRun lists the history of a run, oldest first.
func (s *Store) EventsOfRun(ctx context.Context, repository, run string, of lifecycle.PageOf) (eventPage, error) {
	after, err := parsePosition(eventsOfRunListing, of.After)
	if err != nil || run == "" {
		return eventPage{}, err
	}
	input := &dynamodb.QueryInput{IndexName: sdk.String(byRun)}
	found, next, more, err := s.readHistory(ctx, input, runKey, lifecycle.RunKey(repository, run), after, sizeOf(of))
	page := eventPage{Items: found}
	if more {
		page.Next = token.New(eventsOfRunListing, next)
	}
	return page, err
}

// EventsSince lists the whole history after a token, oldest first. Next is never empty: it goes on from the
// last event there is. The read is consistent: of items that are new, DynamoDB does not promise that an old
// read has the first when it has the second, and the second would be gone on from.
func (s *Store) EventsSince(ctx context.Context, of lifecycle.PageOf) (eventPage, error) {
	after, err := parsePosition(eventsListing, of.After)
	if err != nil {
		return eventPage{}, err
	}
	input := &dynamodb.QueryInput{ConsistentRead: sdk.Bool(true)}
	found, next, _, err := s.readHistory(ctx, input, subject, chain, after, sizeOf(of))
	if err != nil {
		return eventPage{}, err
	}
	return eventPage{Items: found, Next: token.New(eventsListing, next)}, nil
}

// LastEvent is the page token of the newest event.
func (s *Store) LastEvent(ctx context.Context) (string, error) {
	const what = "find the last event"
	last, err := s.lastItem(ctx, what)
	if err != nil || last == nil {
		return token.New(eventsListing, ""), err
	}
	return token.New(eventsListing, behind(textOf(last, eventID))), nil
}

// A position in the history is the id of the event that was read last, or, if that was the last of its item,
// what sorts behind all ids of the item and before the next one, so that the item is not read again.

// behind is the position behind an item.
func behind(id string) string { return id[:min(len(id), placeDigits)] + "ffff" }

func parsePosition(index, pageToken string) (string, error) {
	parts, err := token.Parse(index, pageToken, 1)
	if err != nil || parts == nil || parts[0] == "" {
		return "", err
	}
	if len(parts[0]) != placeDigits+indexDigits {
		return "", token.Bad(index)
	}
	return parts[0], nil
}

// readHistory reads events of a subject or run behind a position, at most so
// many, and says where it stopped and whether there are more.
func (s *Store) readHistory(ctx context.Context, input *dynamodb.QueryInput, attribute, value, after string, size int,
) (found []event, next string, more bool, err error) {
	input.TableName = s.table(events)
	input.Limit = sdk.Int32(int32(size + 1))
	input.KeyConditionExpression = sdk.String("#of = :of")
	input.ExpressionAttributeNames = map[string]string{"#of": attribute}
	input.ExpressionAttributeValues = item{":of": text(value)}
	if after != "" {
		*input.KeyConditionExpression += " AND #id >= :after"
		input.ExpressionAttributeNames["#id"] = eventID
		input.ExpressionAttributeValues[":after"] = text(itemAt(after))
	}
	next = after
	for {
		out, err := s.client.Query(ctx, input)
		if err != nil {
			return nil, after, false, s.failed("list events", events, err)
		}
		for _, it := range out.Items {
			for _, e := range s.soundEvents(it) {
				if e.ID <= after {
					continue
				}
				if len(found) == size {
					return found, next, true, nil
				}
				found, next = append(found, e), e.ID
			}
			next = behind(textOf(it, eventID))
		}
		if out.LastEvaluatedKey == nil {
			return found, next, false, nil
		}
		input.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// itemAt is the first item that may have events after a position.
func itemAt(position string) string {
	if position == behind(position) {
		return position
	}
	return position[:placeDigits]
}

// soundEvents are the events of an item that have not expired. A damaged item has none and is logged once.
func (s *Store) soundEvents(it item) []event {
	r, err := decode[struct {
		Events []event `json:"events"`
	}](it)
	if err != nil {
		s.logDamaged(events, textOf(it, subject)+" "+textOf(it, eventID), err)
		return nil
	}
	var found []event
	for _, e := range r.Events {
		if e = store.NormalizeEvent(e); !expired(e.At.Add(store.EventRetention), s.now()) {
			found = append(found, e)
		}
	}
	return found
}

// The history has no index by host: the events of an operation, about many hosts, are one item. A copy for
// each host would cost every claim and release a write unit a host, for a question that a person asks now and
// then. So the question pays: the chain is read backwards, until it is older than what was asked for.
const (
	// hostHistoryReads bounds the calls of one question, 1 MB each: 128 read units, about 3,500 events. A
	// fleet of 1,000 hosts with jobs of 10 minutes writes that in some 8 minutes, one of 50 in 3 hours.
	hostHistoryReads = 24
)

// EventsOfInstance lists the newest events of a host, at most so many, none from before since and none from until on. It reads no more of
// the history than hostHistoryReads.
func (s *Store) EventsOfInstance(ctx context.Context, instanceID string, since, until time.Time, limit int) (lifecycle.HostHistory, error) {
	input := &dynamodb.QueryInput{
		TableName:                 s.table(events),
		KeyConditionExpression:    sdk.String("#subject = :chain"),
		ExpressionAttributeNames:  map[string]string{"#subject": subject},
		ExpressionAttributeValues: item{":chain": text(chain)},
		ScanIndexForward:          sdk.Bool(false),
	}
	newest := store.Newest{Since: since, Until: until, Limit: limit}
	if !until.IsZero() && until.Before(s.now()) {
		end, err := s.placeOf(ctx, store.AllWritten(until))
		if err != nil {
			return lifecycle.HostHistory{}, err
		}
		*input.KeyConditionExpression += " AND #id < :end"
		input.ExpressionAttributeNames["#id"] = eventID
		input.ExpressionAttributeValues[":end"] = text(end)
	}
	var from time.Time // how far back was read
	for range hostHistoryReads {
		out, err := s.client.Query(ctx, input)
		if err != nil {
			return lifecycle.HostHistory{}, s.failed("list events of instance", events, err)
		}
		for _, it := range out.Items {
			found := s.soundEvents(it)
			for _, e := range slices.Backward(found) {
				if instanceID == "" || e.InstanceID == instanceID {
					newest.Add(e)
				}
				from = e.At
			}
		}
		if out.LastEvaluatedKey == nil || !from.IsZero() && newest.Done(from) {
			return newest.History(), nil
		}
		input.ExclusiveStartKey = out.LastEvaluatedKey
	}
	h := newest.History()
	if h.From.IsZero() {
		h.From = from
	}
	return h, nil
}

// placeOf is behind a place of the chain after which nothing was written before a time. Places have no times, so it is searched for by halves:
// some 20 reads of one item each, or twice as many in a day in which the chain was begun again far behind its end.
func (s *Store) placeOf(ctx context.Context, t time.Time) (string, error) {
	end := strings.Repeat("f", placeDigits+1) // behind all places
	first, err := s.nextItem(ctx, "", true)
	if err != nil || first == nil {
		return end, err
	}
	last, err := s.nextItem(ctx, end, false)
	if err != nil || last == nil {
		return end, err
	}
	low, high := placeIn(first), placeIn(last)+1
	for low < high {
		middle := low + (high-low)/2
		it, err := s.nextItem(ctx, fmt.Sprintf("%0*x", placeDigits, middle), true)
		if err != nil {
			return end, err
		}
		switch found := s.soundEvents(it); {
		case it == nil || len(found) > 0 && found[len(found)-1].At.After(t):
			high = middle
		default:
			low = placeIn(it) + 1
		}
	}
	return fmt.Sprintf("%0*x", placeDigits, high), nil
}

// nextItem is the first item of the chain from a place on, or the last one up to it; nil: there is none.
func (s *Store) nextItem(ctx context.Context, place string, forward bool) (item, error) {
	than := "<="
	if forward {
		than = ">="
	}
	input := &dynamodb.QueryInput{
		TableName: s.table(events), ScanIndexForward: sdk.Bool(forward), Limit: sdk.Int32(1),
		KeyConditionExpression:    sdk.String("#subject = :chain AND #id " + than + " :place"),
		ExpressionAttributeNames:  map[string]string{"#subject": subject, "#id": eventID},
		ExpressionAttributeValues: item{":chain": text(chain), ":place": text(cmp.Or(place, "0"))},
	}
	out, err := s.client.Query(ctx, input)
	if err != nil {
		return nil, s.failed("find a time in the history", events, err)
	}
	if len(out.Items) == 0 {
		return nil, nil
	}
	return out.Items[0], nil
}

// placeIn is the place of an item; 0: it is damaged.
func placeIn(it item) uint64 {
	place, err := strconv.ParseUint(textOf(it, eventID), 16, 64)
	if err != nil {
		return 0
	}
	return place
}
