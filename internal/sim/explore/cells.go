package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/pause"
)

// cell is one of the things that a world consists of.
type cell uint8

// At most so many hosts and requests fit into a world.
const (
	maxHosts = 3
	maxAsks  = 2
)

// The cells: for each host its record, its report, what is really there and what GitHub has of its runner,
// then the requests, the queue, the cloud, the pause of the pool and the clock. The crowd is how many
// operations there are, for the rules.
const (
	instanceCell cell = 0
	reportCell        = instanceCell + maxHosts
	agentCell         = reportCell + maxHosts
	runnerCell        = agentCell + maxHosts
	requestCell       = runnerCell + maxHosts
	queueCell         = requestCell + maxAsks
	cloudCell         = queueCell + 1
	pauseCell         = cloudCell + 1
	clockCell         = pauseCell + 1
	crowdCell         = clockCell + 1
	cells             = crowdCell + 1
)

// id stands for a value in a cell; 0: there is none. In the cells of the clock
// and the crowd it is the value itself.
type id uint32

// world is everything there is but the operations. Values are never changed
// in place, so that a copy of the ids is a copy of the world.
type world [cells]id

func hostKey(i int) string   { return fmt.Sprintf("i-%d", i+1) }
func requestID(i int) string { return fmt.Sprintf("ask-%d", i+1) }

// hostOf is the number of the explored host with the key, or -1.
func hostOf(key string) int { return numbered(key, "i-", maxHosts) }

// askOf is the number of the explored request with the id, or -1.
func askOf(requestID string) int { return numbered(requestID, "ask-", maxAsks) }

func numbered(name, prefix string, limit int) int {
	digit, ok := strings.CutPrefix(name, prefix)
	if !ok || len(digit) != 1 || digit[0] < '1' || int(digit[0]-'0') > limit {
		return -1
	}
	return int(digit[0] - '1')
}

// mail is the queue: last is the number of the message that was sent last.
type mail struct {
	messages []message
	last     int
	// handles are those of the messages, in a value.
	handles []string
}

// copied is the queue, to be changed.
func (q mail) copied() mail { return mail{messages: slices.Clone(q.messages), last: q.last} }

// message is one in the queue. It is hidden from when it is received until a
// unit has passed.
type message struct {
	lifecycle.Message
	id, receives int
	hidden       bool
}

// handlePrefix marks the names of deliveries.
const handlePrefix = "delivery-"

func (m message) handle() string { return fmt.Sprintf("%s%d.%d", handlePrefix, m.id, m.receives) }

// cloud is what machines there are.
type cloud struct{ machines []machine }

type machine struct {
	lifecycle.Machine
	token string
	// root is the token of the last replacement of its root volume; empty: it has that of its launch.
	root string
}

// agent is a host's agent with what is really there.
type agent struct {
	// answer is what the agent has read and not yet answered.
	answer *lifecycle.Report
	// registered and cleaned are the assignments for which it last really
	// registered, and was really clean.
	registered, cleaned int64
	busy                bool
}

// runner is what GitHub has of the registration of an assignment, beside that it is there: the run whose labels were
// set, and whether it was deleted.
type runner struct {
	of   int64
	run  string
	gone bool
}

// value is what an id stands for.
type value struct {
	v    any
	text text
	// version of a row.
	version int64
	// meanings are the numbers of what it means, by the clock; 0: not known yet.
	meanings []uint32
}

// values gives every value one id, and everything that means the same at a
// time one number.
type values struct {
	ids      map[string]id
	all      []value
	meanings map[string]uint32
}

func newValues() *values {
	return &values{ids: map[string]id{}, all: make([]value, 1), meanings: map[string]uint32{}}
}

// id is that of the value.
func (x *values) id(v any) id {
	var t text
	switch v := v.(type) {
	case lifecycle.Record:
		t.record(v)
	case lifecycle.Report:
		t.report(v)
	case lifecycle.Request:
		t.request(v)
	case mail:
		t.mail(v)
	case cloud:
		t.cloud(v)
	case agent:
		t.agent(v)
	case runner:
		t.runner(v)
	case pause.Pause:
		t.pause(v)
	}
	key := t.exact()
	if known, ok := x.ids[key]; ok {
		return known
	}
	if box, ok := v.(mail); ok {
		for _, m := range box.messages {
			box.handles = append(box.handles, m.handle())
		}
		v = box
	}
	n := value{v: v, text: t}
	if len(t.versions) > 0 {
		n.version = t.versions[0].n
	}
	x.all = append(x.all, n)
	x.ids[key] = id(len(x.all) - 1)
	return x.ids[key]
}

// at is the value in a cell of the world; false: there is none.
func at[T any](x *values, w *world, c cell) (T, bool) {
	v, ok := x.all[w[c]].v.(T)
	return v, ok
}

// meaning is the number of what the value means at the clock's time.
func (x *values) meaning(of, clock id) uint32 {
	if of == 0 {
		return 0
	}
	return x.numbered(&x.all[of].meanings, &x.all[of].text, clock)
}

func (x *values) numbered(known *[]uint32, t *text, clock id) uint32 {
	for len(*known) <= int(clock) {
		*known = append(*known, 0)
	}
	if n := (*known)[clock]; n != 0 {
		return n
	}
	key := t.meaning(time.Duration(clock) * unit)
	n, ok := x.meanings[key]
	if !ok {
		n = uint32(len(x.meanings) + 1)
		x.meanings[key] = n
	}
	(*known)[clock] = n
	return n
}
