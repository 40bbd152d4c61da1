package github

import (
	"testing"
	"time"
)

// TestUnusedAnswersLeave: what is asked for again stays, and what is not goes after a while, so that answers about single runs do not fill the room.
func TestUnusedAnswersLeave(t *testing.T) {
	now := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	l := newLRU[string, int](100, 15*time.Minute)
	l.now = func() time.Time { return now }
	l.put("runners", 1, 10)
	l.put("run 1", 2, 10)
	now = now.Add(10 * time.Minute)
	if _, ok := l.get("runners"); !ok {
		t.Error("an answer of ten minutes is gone")
	}
	now = now.Add(6 * time.Minute)
	l.put("run 2", 3, 10)
	_, listed := l.get("runners")
	_, first := l.get("run 1")
	_, second := l.get("run 2")
	if !listed || first || !second || l.weight != 20 || l.order.Len() != 2 {
		t.Errorf("runners %v, run 1 %v, run 2 %v, of weight %d; want the first and the last, of 20", listed, first, second, l.weight)
	}
	l.put("large", 4, 90)
	if _, ok := l.get("runners"); ok || l.weight != 100 {
		t.Errorf("it weighs %d, and the value used before the others is there: %v", l.weight, ok)
	}
}
