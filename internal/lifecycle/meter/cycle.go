// Package meter accounts for the time of hosts: which part of it each run used, and which part the pool waited.
package meter

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle/line"
)

// Milli is a time in milliseconds since 1970; 0: none.
type Milli int64

// At is the time, without what is less than a millisecond.
func At(t time.Time) Milli {
	if t.IsZero() {
		return 0
	}
	return Milli(t.UnixMilli())
}

// Time is the time in UTC; zero for none.
func (m Milli) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// Cycle is a part of a host's life. It begins with the launch, or where the last cycle ended, and ends when a run gives the
// host back, or with the host. So the cycles of a host leave out no time and count none twice. The times after From are 0
// while they have not come.
type Cycle struct {
	From Milli
	// Launched: the cycle begins with the launch.
	Launched bool
	// PooledAt is when the host was clean and in the pool, ClaimedAt when a run got it (for the run of its launch: From),
	// and ReadyAt when its runner was ready.
	PooledAt, ClaimedAt, ReadyAt Milli
	// StoppedAt is when the machine of the pooled host was stopped, and StartedAt when it was started again, at the claim. The machine
	// is not paid for in between.
	StoppedAt, StartedAt Milli
	// ReleasedAt is when the run gave it back first. EndedAt is when no job ran any more.
	ReleasedAt, EndedAt Milli
	// GoneAt is when a host ended that was not clean since: no other cycle follows, and this one goes on until then.
	GoneAt Milli

	// User is the run that had the host; empty: none had.
	User
}

// User is what uses a host.
type User struct {
	// Repository is "owner/name".
	Repository string `json:"repository,omitempty"`
	// Workflow is the name of the workflow; empty: it is not known.
	Workflow string `json:"workflow,omitempty"`
	RunID    string `json:"runId,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
}

// WorkflowName is the name of a workflow, which its author chose, as it is kept: one readable line of 64 bytes at most.
func WorkflowName(name string) string {
	const most = 64
	name = line.First(name)
	if len(name) > most {
		name = strings.TrimSpace(strings.ToValidUTF8(name[:most], ""))
	}
	return name
}

// Used reports whether a run had the host.
func (c Cycle) Used() bool { return c.ClaimedAt != 0 }

// last is the last time of the cycle that is known. The clocks of two replicas differ, so that now may be earlier.
func (c Cycle) last() Milli {
	return max(c.From, c.PooledAt, c.StoppedAt, c.StartedAt, c.ClaimedAt, c.ReadyAt, c.ReleasedAt)
}

// end is when the cycle is released, or ends, as of a time. It is at least a millisecond after the begin: a reading has the name of that
// time and its host, so no two cycles of a host may end at the same one, however far ahead EC2's clock is, which says when
// a host was launched.
func (c Cycle) end(at time.Time) Milli { return max(At(at), c.last(), c.From+1) }

// Claimed is the open cycle of a host that a run got at a time, as it is before its release.
func (c Cycle) Claimed(at time.Time, by User) Cycle {
	c = c.claimed(at)
	c.User = by
	return c
}

func (c Cycle) claimed(at time.Time) Cycle {
	switch {
	case c.Used():
	case c.Launched && c.PooledAt == 0:
		c.ClaimedAt = c.From
	default:
		c.ClaimedAt = max(At(at), c.last())
	}
	return c
}

// Times are the parts of a time.
type Times struct {
	// Idle is the time in the pool, without that in which the machine was stopped. Boot is from the launch or the claim until the runner was ready, and for a host that
	// was launched ahead of need until it was in the pool. Busy is the time that a run had the host, with or without a
	// job on it. Clean is from the end of a run until the host was in the pool again, or had ended.
	Idle  time.Duration `json:"idle,omitempty"`
	Boot  time.Duration `json:"boot,omitempty"`
	Busy  time.Duration `json:"busy,omitempty"`
	Clean time.Duration `json:"clean,omitempty"`
}

// Plus is the sum of both.
func (t Times) Plus(o Times) Times {
	return Times{Idle: t.Idle + o.Idle, Boot: t.Boot + o.Boot, Busy: t.Busy + o.Busy, Clean: t.Clean + o.Clean}
}

// Sum is all of it.
func (t Times) Sum() time.Duration { return t.Idle + t.Boot + t.Busy + t.Clean }

// Between are the times of the part of a cycle that lies between two times: of the pool, and of the user. An open cycle goes
// on until now. Their sum is the length of that part, without the time in which the machine was stopped.
func (c Cycle) Between(from, until, now Milli) (pool, user Times) {
	end := known(c.EndedAt, max(now, c.last()))
	part := func(begin, until2 Milli) time.Duration {
		return time.Duration(max(0, min(until2, until)-max(begin, from))) * time.Millisecond
	}
	begin := c.From
	if !c.Launched || c.PooledAt != 0 || !c.Used() {
		pooled := known(c.PooledAt, end)
		if t := part(begin, pooled); c.Launched {
			pool.Boot = t
		} else {
			pool.Clean = t
		}
		begin = known(c.ClaimedAt, end)
		pool.Idle = part(pooled, begin)
		if c.StoppedAt != 0 {
			pool.Idle -= part(max(pooled, c.StoppedAt), min(begin, known(c.StartedAt, begin)))
		}
	}
	if c.Used() {
		ready := known(c.ReadyAt, end)
		user = Times{Boot: part(begin, ready), Busy: part(ready, end)}
	}
	pool.Clean += part(c.EndedAt, c.GoneAt)
	return pool, user
}

func known(at, otherwise Milli) Milli {
	if at == 0 {
		return otherwise
	}
	return at
}

// A cycle is kept as one short text: a record is written with each step of its host, and a write costs a unit for each KB.
// The fields are From in base 36, the other times as milliseconds after it, or "-", the first with StoppedAt and StartedAt behind tildes and the
// last with GoneAt behind a slash if there are such, the
// attempt, the run, the repository, and the workflow, which may have commas.
const shortFields, longFields = 6, 10

// longest is longer than any cycle: what goes through one day by day ends, whatever a damaged row says.
const longest = Milli(10 * 365 * 24 * 60 * 60 * 1000)

func (c Cycle) String() string {
	var b strings.Builder
	if c.Launched {
		b.WriteByte('+')
	}
	b.WriteString(strconv.FormatInt(int64(c.From), 36))
	write := func(before byte, at Milli) {
		if b.WriteByte(before); at == 0 {
			b.WriteByte('-')
		} else {
			b.WriteString(strconv.FormatInt(int64(at-c.From), 36))
		}
	}
	write(',', c.PooledAt)
	if c.StoppedAt != 0 {
		write('~', c.StoppedAt)
		write('~', c.StartedAt)
	}
	for _, at := range []Milli{c.ClaimedAt, c.ReadyAt, c.ReleasedAt, c.EndedAt} {
		write(',', at)
	}
	if c.GoneAt != 0 {
		b.WriteByte('/')
		b.WriteString(strconv.FormatInt(int64(c.GoneAt-c.From), 36))
	}
	if c.User != (User{}) {
		fmt.Fprintf(&b, ",%d,%s,%s,%s", c.Attempt, filled(c.RunID), filled(c.Repository), c.Workflow)
	}
	return b.String()
}

// Parse reads what String wrote.
func Parse(text string) (Cycle, error) {
	part := strings.SplitN(text, ",", longFields)
	if len(part) != shortFields && len(part) != longFields {
		return Cycle{}, fmt.Errorf("a cycle of a host has %d fields, want %d or %d", len(part), shortFields, longFields)
	}
	number, launched := strings.CutPrefix(part[0], "+")
	from, err := strconv.ParseUint(number, 36, 50) // the year 37,000 or so
	if err != nil {
		return Cycle{}, fmt.Errorf("the begin of a cycle of a host: %w", err)
	}
	c := Cycle{From: Milli(from), Launched: launched}
	ended, gone, hasGone := strings.Cut(part[shortFields-1], "/")
	if !hasGone {
		gone = "-"
	}
	pooled, stopped, started := part[1], "-", "-"
	if stop := strings.Split(part[1], "~"); len(stop) == 3 {
		pooled, stopped, started = stop[0], stop[1], stop[2]
	}
	for i, text := range []string{pooled, part[2], part[3], part[4], ended, gone, stopped, started} {
		if text == "-" {
			continue
		}
		after, err := strconv.ParseUint(text, 36, 63)
		if err != nil || Milli(after) > longest {
			return Cycle{}, fmt.Errorf("time %d of a cycle of a host, %q, is not within ten years after its begin", i+1, text)
		}
		*[]*Milli{&c.PooledAt, &c.ClaimedAt, &c.ReadyAt, &c.ReleasedAt, &c.EndedAt, &c.GoneAt, &c.StoppedAt, &c.StartedAt}[i] = Milli(from) + Milli(after)
	}
	if len(part) == shortFields {
		return c, nil
	}
	if c.Attempt, err = strconv.Atoi(part[6]); err != nil {
		return Cycle{}, fmt.Errorf("the attempt of a cycle of a host: %w", err)
	}
	c.RunID, c.Repository, c.Workflow = emptied(part[7]), emptied(part[8]), part[9]
	return c, nil
}

// filled and emptied are an empty field as it is kept, and back. Neither run ids nor repositories have commas.
func filled(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func emptied(s string) string {
	if s == "-" {
		return ""
	}
	return s
}
