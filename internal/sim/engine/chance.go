package engine

import (
	"maps"
	"math"
	"slices"
	"time"
)

// drawFaultRates draws a factor for each fault: in one life some faults never occur and
// others occur often. Lives that differ find more than lives that are all alike.
func (e *Engine) drawFaultRates() {
	e.odds, e.chances = map[Fault]float64{}, map[Fault]float64{}
	for _, f := range allFaults {
		switch e.Rand.IntN(8) {
		case 0, 1:
			e.SetOdds(f, 0)
		case 2:
			e.SetOdds(f, 4)
		default:
			e.SetOdds(f, 1)
		}
	}
}

// DrawHotFaults has the faults of hot hosts strike in this life.
func (e *Engine) DrawHotFaults() {
	for _, f := range slices.Sorted(maps.Keys(hotRates)) {
		e.odds[f] = []float64{0, 1, 1, 4}[e.Rand.IntN(4)]
		e.chances[f] = hotRates[f] * e.odds[f]
	}
	for f := range hotIntervals {
		e.odds[f] = 1
	}
}

// DrawStopFaults has the start of a stopped machine fail in this life.
func (e *Engine) DrawStopFaults() {
	f := FaultNoCapacity
	e.odds[f] = []float64{0, 1, 1, 3}[e.Rand.IntN(4)]
	e.chances[f] = noCapacityRate * e.odds[f]
}

// DrawHibernateFaults has the hibernation of machines fail in this life.
func (e *Engine) DrawHibernateFaults() {
	for _, f := range slices.Sorted(maps.Keys(hibernateRates)) {
		e.odds[f] = []float64{0, 1, 1, 3}[e.Rand.IntN(4)]
		e.chances[f] = hibernateRates[f] * e.odds[f]
	}
}

// DrawResetFaults has the replacement of root volumes fail in this life.
func (e *Engine) DrawResetFaults() {
	for _, f := range slices.Sorted(maps.Keys(resetRates)) {
		e.odds[f] = []float64{0, 1, 1, 3}[e.Rand.IntN(4)]
		e.chances[f] = resetRates[f] * e.odds[f]
	}
}

// DrawJobFaults has the faults of webhooks and their jobs strike in this life.
func (e *Engine) DrawJobFaults() {
	for _, f := range slices.Sorted(maps.Keys(jobRates)) {
		e.odds[f] = []float64{0, 1, 1, 3}[e.Rand.IntN(4)]
		e.chances[f] = jobRates[f] * e.odds[f]
	}
}

// SetOdds sets how often a fault strikes in this life, as a factor of its usual rate.
func (e *Engine) SetOdds(f Fault, factor float64) {
	e.odds[f], e.chances[f] = factor, rates[f]*factor
}

// LimitOdds has no fault of single calls strike more often than its usual rate from here on.
func (e *Engine) LimitOdds() {
	for f, factor := range e.odds {
		if factor > 1 {
			e.odds[f], e.chances[f] = 1, e.chances[f]/factor
		}
	}
}

// Chance draws whether a fault strikes now, and counts it.
func (e *Engine) Chance(f Fault) bool {
	if e.Director != nil {
		return e.Director.Strikes(f)
	}
	if !e.Chaos || f == "" {
		return false
	}
	if e.Rand.Float64() >= e.chances[f] {
		return false
	}
	e.Coverage.Faults[f]++
	return true
}

// Recur has a fault strike at random times while there are storms. strike reports whether it
// found something to strike.
func (e *Engine) Recur(f Fault, strike func() bool) {
	odds := e.odds[f]
	if odds == 0 {
		return
	}
	mean := time.Duration(float64(meanIntervals[f]+hotIntervals[f]) / odds)
	var again func()
	again = func() {
		if !e.Storms {
			return
		}
		if strike() {
			e.Coverage.Faults[f]++
		}
		e.After(e.Exp(mean, 10*mean), again)
	}
	e.After(e.Exp(mean, 10*mean), again)
}

// Exp draws an exponentially distributed time with the mean, at most limit.
func (e *Engine) Exp(mean, limit time.Duration) time.Duration {
	if e.Director != nil {
		return min(mean, limit)
	}
	d := time.Duration(-math.Log(1-e.Rand.Float64()) * float64(mean))
	return min(d, limit)
}

// Between draws a time from low to high.
func (e *Engine) Between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	if e.Director != nil {
		return low + (high-low)/2
	}
	return low + time.Duration(e.Rand.Int64N(int64(high-low)))
}

// Spread is a wait as fleet.Drive makes it: a tenth shorter or longer.
func (e *Engine) Spread(d time.Duration) time.Duration {
	if e.Director != nil {
		return d
	}
	return time.Duration(float64(d) * (0.9 + 0.2*e.Rand.Float64()))
}

// Latency is what a step costs at least.
func (e *Engine) Latency() time.Duration { return e.Between(time.Millisecond, 10*time.Millisecond) }

// Backoff is how long the daemon waits after so many failures.
func (e *Engine) Backoff(failures int) time.Duration {
	return e.Between(time.Millisecond, min(50*time.Millisecond<<min(failures, 6), 2*time.Second))
}
