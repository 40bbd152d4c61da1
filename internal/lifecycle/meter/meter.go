package meter

import "time"

// Meter is what a record knows of the time of its host: the open cycle, as text. It is empty in the records of an older
// controld, until the host is in the pool again.
//
// A cycle ends with a release. It becomes a reading before the write of the record that begins the next one, from what the
// record says by then: so a crash between the two writes loses nothing, and a repeat writes the same row. The last one becomes a reading
// once it is known when the machine ended, which may have been before the release.
type Meter string

// Begin is the meter of a host that was launched at a time.
func Begin(launchedAt time.Time) Meter {
	return Meter(Cycle{From: At(launchedAt), Launched: true}.String())
}

// Cycle is the open cycle; false: none is known.
func (m Meter) Cycle() (Cycle, bool) {
	c, err := Parse(string(m))
	return c, err == nil
}

// change changes the open cycle, if there is one.
func (m *Meter) change(to func(Cycle) Cycle) {
	if c, ok := m.Cycle(); ok {
		*m = Meter(to(c).String())
	}
}

// Ready notes that the host's runner is ready for the run that got the host at claimedAt.
func (m *Meter) Ready(claimedAt, now time.Time) {
	m.change(func(c Cycle) Cycle {
		c = c.claimed(claimedAt)
		c.ReadyAt = max(At(now), c.last())
		return c
	})
}

// ChargeTo names the run that uses the host, if that is known before the release.
func (m *Meter) ChargeTo(user User) {
	if user == (User{}) {
		return
	}
	m.change(func(c Cycle) Cycle {
		c.User = user
		return c
	})
}

// Release notes that a run gives the host back, which it got at claimedAt.
func (m *Meter) Release(claimedAt, now time.Time, by User) {
	m.change(func(c Cycle) Cycle {
		c = c.claimed(claimedAt)
		c.ReleasedAt = c.end(now)
		if c.User == (User{}) {
			c.User = by
		}
		return c
	})
}

// Ended is the cycle that has ended, by what the record says; false: it has not. releasedAt is when the clock of the release
// began again, since a job still ran.
func (m Meter) Ended(releasedAt time.Time) (Cycle, bool) {
	c, ok := m.Cycle()
	switch {
	case !ok:
		return c, false
	case c.EndedAt == 0 && c.ReleasedAt != 0:
		c.EndedAt = c.end(releasedAt)
	}
	return c, c.EndedAt != 0
}

// next begins the next cycle, if the open one has ended.
func (m *Meter) next(releasedAt time.Time) {
	if c, ended := m.Ended(releasedAt); ended {
		*m = Meter(Cycle{From: c.EndedAt}.String())
	}
}

// Pool notes that the host is in the pool.
func (m *Meter) Pool(releasedAt, now time.Time) {
	m.next(releasedAt)
	if _, ok := m.Cycle(); !ok {
		*m = Meter(Cycle{From: At(now)}.String())
	}
	m.change(func(c Cycle) Cycle {
		if c.PooledAt == 0 {
			c.PooledAt = max(At(now), c.From)
		}
		return c
	})
}

// Stop notes that the machine of the pooled host is stopped. One that was stopped before in this cycle was not paid for since.
func (m *Meter) Stop(now time.Time) {
	m.change(func(c Cycle) Cycle {
		if c.StoppedAt == 0 {
			c.StoppedAt = max(At(now), c.last())
		}
		return c
	})
}

// Start notes that the machine is started for a run.
func (m *Meter) Start(now time.Time) {
	m.change(func(c Cycle) Cycle {
		if c.StoppedAt != 0 {
			c.StartedAt = max(At(now), c.last())
		}
		return c
	})
}

// End notes that the host has ended. Release comes before it if a run had the host.
func (m *Meter) End(releasedAt, now time.Time, hadRun bool) {
	m.change(func(c Cycle) Cycle {
		if c.ReleasedAt != 0 && !hadRun { // it was being cleaned
			c.EndedAt = known(c.EndedAt, c.end(releasedAt))
			c.GoneAt = max(c.end(now), c.EndedAt)
			return c
		}
		c.EndedAt = c.end(now)
		return c
	})
}

// After has the open cycle begin where a reading of the one before says that it ended.
func (m *Meter) After(r Reading) {
	before, err := Parse(r.Text)
	if err != nil {
		return
	}
	m.change(func(c Cycle) Cycle {
		c.From = before.EndedAt
		for _, at := range []*Milli{&c.PooledAt, &c.StoppedAt, &c.StartedAt, &c.EndedAt} {
			if *at != 0 {
				*at = max(*at, c.From)
			}
		}
		return c
	})
}
