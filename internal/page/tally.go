package page

import (
	"strconv"
	"strings"
	"time"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// tallySteps are into how many equal steps the time of a chart is divided for its slider.
const tallySteps = 480

// tally counts the hosts of each state at the times at which the slider stops. It counts all hosts, whichever are shown.
type tally struct {
	from, to time.Time
	// changes are what each count differs by from the one before it.
	changes map[remudav1.State][]int
}

func newTally(from, to time.Time) *tally {
	t := &tally{from: from, to: to, changes: map[remudav1.State][]int{}}
	for _, state := range alive {
		t.changes[state] = make([]int, tallySteps+2)
	}
	return t
}

// add counts n hosts in a state from one time until another. At the end of the chart a state that lasts until then counts too.
func (t *tally) add(n int, state remudav1.State, from, until time.Time) {
	if t.changes[state] == nil {
		return
	}
	end := tallySteps + 1
	if until.Before(t.to) {
		end = t.stop(until)
	}
	t.changes[state][t.stop(from)] += n
	t.changes[state][end] -= n
}

// stop is the first stop of the slider that is not before a time.
func (t *tally) stop(at time.Time) int {
	span := max(t.to.Sub(t.from), time.Millisecond)
	return int((at.Sub(t.from)*tallySteps + span - 1) / span)
}

// States are the names of the states, in the order of Counts.
func (t *tally) States() string {
	var names []string
	for _, state := range alive {
		names = append(names, chartStates[state])
	}
	return strings.Join(names, " ")
}

// Counts are the hosts of each state at each stop: "0 0 3 1,0 0 4 1".
func (t *tally) Counts() string {
	var b strings.Builder
	now := make([]int, len(alive))
	for stop := range tallySteps + 1 {
		for i, state := range alive {
			now[i] += t.changes[state][stop]
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(strconv.Itoa(now[i]))
		}
		if stop < tallySteps {
			b.WriteByte(',')
		}
	}
	return b.String()
}

// Steps is the last stop of the slider.
func (t *tally) Steps() int { return tallySteps }
