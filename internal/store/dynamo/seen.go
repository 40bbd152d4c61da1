package dynamo

import (
	"context"
	"errors"
	"net/url"
	"time"
)

// seenID is the sort key of what was seen: its subject has it all.
const seenID = "seen"

// SeeOnce remembers an id of a kind until a time: ErrExists if it is remembered
// already. Each is a subject of its own in the events table, so that no
// partition has them all; watchers read another subject and never meet them.
func (s *Store) SeeOnce(ctx context.Context, kind, id string, until time.Time) error {
	what := "remember " + kind + " " + id
	it := item{subject: text("seen/" + url.PathEscape(kind) + "/" + id), eventID: text(seenID), untilKey: timeValue(until)}
	setExpiry(it, until)
	err := s.put(ctx, what, events, it, s.isOver())
	if errors.Is(err, errCondition) {
		return exists(what)
	}
	return err
}

// isOver holds for no row, and for one whose time is over and that has not gone yet.
func (s *Store) isOver() condition {
	return condition{
		"attribute_not_exists(#subject) OR #until <= :now",
		map[string]string{"#subject": subject, "#until": untilKey},
		item{":now": timeValue(s.now())},
	}
}
