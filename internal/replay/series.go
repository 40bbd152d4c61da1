package replay

import "time"

// Series is what there was in each part of a replay, as a mean over the part.
type Series struct {
	// Begin is that of the first part, and Step how long each is.
	Begin time.Time
	Step  time.Duration
	// Up are the machines, Busy those at a job, and Waiting the jobs that wait for a host.
	Up, Busy, Waiting []float64

	up, busy, waiting level
}

// The parts of a long history are hours, those of a short one shorter.
const longHistory, longStep, shortStep = 3 * 24 * time.Hour, time.Hour, 10 * time.Minute

func newSeries(begin, end time.Time) *Series {
	step := longStep
	if end.Sub(begin) <= longHistory {
		step = shortStep
	}
	s := &Series{Begin: begin.Truncate(step), Step: step}
	for _, l := range []*level{&s.up, &s.busy, &s.waiting} {
		*l = level{begin: s.Begin, step: step, since: s.Begin}
	}
	return s
}

func (s *Series) close(end time.Time) {
	for l, to := range map[*level]*[]float64{&s.up: &s.Up, &s.busy: &s.Busy, &s.waiting: &s.Waiting} {
		l.add(end, 0)
		*to = l.means()
	}
}

// level is a number over time.
type level struct {
	begin time.Time
	step  time.Duration
	n     int
	since time.Time
	sums  []time.Duration // of n, by part
}

// add changes the number at a time.
func (l *level) add(now time.Time, change int) {
	for l.since.Before(now) {
		part := int(l.since.Sub(l.begin) / l.step)
		for len(l.sums) <= part {
			l.sums = append(l.sums, 0)
		}
		until := l.begin.Add(time.Duration(part+1) * l.step)
		if until.After(now) {
			until = now
		}
		l.sums[part] += time.Duration(l.n) * until.Sub(l.since)
		l.since = until
	}
	l.n += change
}

func (l *level) means() []float64 {
	means := make([]float64, len(l.sums))
	for i, sum := range l.sums {
		means[i] = float64(sum) / float64(l.step)
	}
	return means
}
