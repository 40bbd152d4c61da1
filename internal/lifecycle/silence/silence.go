// Package silence judges whether a host is silent through its own fault. When many hosts
// fall silent at once, the fault is more likely ours: the store takes no reports, or a
// network between it and the hosts is down. Then no host is ended for it.
package silence

import "time"

// A mass is more than a tenth of the hosts, and at least three. With fewer, two hosts that
// really died would keep each other alive in a small fleet.
const (
	massAtLeast = 3
	massPart    = 10
)

// Mass reports whether some of all hosts are too many to have failed at once by themselves.
func Mass(some, all int) bool { return some >= massAtLeast && some*massPart > all }

// missed is the least age of a heartbeat that counts as missed. Heartbeats come every 15 s.
const missed = 25 * time.Second

// Quiet is the age of the last heartbeat from which on a host counts towards a mass: half of
// the silence for which a host is ended. Hosts that stop at the same moment have heartbeats
// whose ages differ by up to 15 s, so all of them count before the first is silent.
func Quiet(limit time.Duration) time.Duration { return max(limit/2, min(limit, missed)) }

// Watch is what a replica knows about its own view of the hosts. The liveness sweep, which
// reads every report, sets it. A replica whose sweep does not run has the zero value, and so
// has a replica that has just started: they leave silent hosts to the one that sweeps.
type Watch struct {
	// StoreReadableSince is since when this replica could read the store without a
	// break. Silence is counted from it, so an outage of the store is not
	// taken for an outage of every host. Zero: silence cannot be judged.
	StoreReadableSince time.Time
	// ReportsReadAt is when every report was last read. A host is judged as it was then, because
	// only then it is known how many others were quiet too.
	ReportsReadAt time.Time
	// StoreUpSince is since when the store has answered this replica, whether it sweeps or not. Zero: it does not, or the replica
	// has just started.
	StoreUpSince time.Time
	// MassSilence is set when a mass of the hosts was quiet at ReportsReadAt.
	MassSilence bool
}

// Silent reports whether a host with this last heartbeat has been silent for limit through its
// own fault, counting only the time in which this replica could have heard it.
func (w Watch) Silent(heartbeat time.Time, limit time.Duration) bool {
	if heartbeat.IsZero() || w.StoreReadableSince.IsZero() || w.MassSilence {
		return false
	}
	if w.StoreReadableSince.After(heartbeat) {
		heartbeat = w.StoreReadableSince
	}
	return w.ReportsReadAt.Sub(heartbeat) >= limit
}

// Listened reports whether every host that lives had time to write a report by now: the store has been up for at least limit.
func (w Watch) Listened(now time.Time, limit time.Duration) bool {
	return !w.StoreUpSince.IsZero() && now.Sub(w.StoreUpSince) >= limit
}

// Excused reports whether a host with this last heartbeat is quiet at now, and that may be our
// fault: a mass of the hosts is quiet, or it is not known yet how many are. A deadline that it
// misses for want of a report is not held against it. A host that never spoke is not excused.
func (w Watch) Excused(heartbeat, now time.Time, limit time.Duration) bool {
	quiet := Quiet(limit)
	if heartbeat.IsZero() || now.Sub(heartbeat) < quiet {
		return false
	}
	return w.MassSilence || w.StoreReadableSince.IsZero() || w.ReportsReadAt.Sub(heartbeat) < quiet
}
