package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/replay"
)

// ready is how many fresh hosts a pool is to have when.
type ready struct {
	minimum int
	periods []period
}

// period is some hours of some days.
type period struct {
	cron  string
	hosts int
}

// readyAt turns the levels of a pool into a minimum, which holds at any time, and schedules for what is above it.
func readyAt(pool string, level map[slot]int) ready {
	r := ready{minimum: level[slot{pool: pool}]}
	of := func(weekend bool, hour int) int { return level[slot{pool, weekend, hour}] }
	for _, weekend := range []bool{false, true} {
		for hour := range 24 {
			r.minimum = min(r.minimum, of(weekend, hour))
		}
	}
	days := map[bool]string{false: "1-5", true: "0,6"}
	for _, weekend := range []bool{false, true} {
		hours := map[int][]int{} // by level
		for hour := range 24 {
			if n := of(weekend, hour); n > r.minimum {
				hours[n] = append(hours[n], hour)
			}
		}
		for _, n := range slices.Backward(slices.Sorted(maps.Keys(hours))) {
			r.periods = append(r.periods, period{fmt.Sprintf("* %s * * %s", ranges(hours[n]), days[weekend]), n})
		}
	}
	return r
}

// ranges are hours as cron has them: 8-11,14.
func ranges(hours []int) string {
	var parts []string
	for i := 0; i < len(hours); {
		last := i
		for last+1 < len(hours) && hours[last+1] == hours[last]+1 {
			last++
		}
		part := strconv.Itoa(hours[i])
		if last > i {
			part += "-" + strconv.Itoa(hours[last])
		}
		parts, i = append(parts, part), last+1
	}
	return strings.Join(parts, ",")
}

// with is a pool with so many fresh hosts ready.
func (r ready) with(p replay.Pool, zone string) (replay.Pool, error) {
	var usual config.Warm
	usual.SetDefaults()
	warm := fleet.WarmPool{Spec: fleet.WithMachine(p.Spec), Policy: policy.WarmPolicy{Lead: usual.Lead}} // of a pool without a warm section
	if p.Warm != nil {
		warm = *p.Warm
	}
	warm.Policy.MinimumIdle, warm.Policy.Schedules = r.minimum, nil
	for _, of := range r.periods {
		made, err := policy.ParsePeriod(of.cron, zone, of.hosts, "")
		if err != nil {
			return p, fmt.Errorf("schedule %s: %w", of.cron, err)
		}
		warm.Policy.Schedules = append(warm.Policy.Schedules, made)
	}
	p.Warm = &warm
	if r.minimum == 0 && len(r.periods) == 0 {
		p.Warm = nil
	}
	return p, nil
}

// text is the policy as a part of a configuration.
func (r ready) text(pool, zone string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s:\n    warm:\n      minimum_idle: %d\n", pool, r.minimum)
	if len(r.periods) > 0 {
		b.WriteString("      schedules:\n")
	}
	for _, p := range r.periods {
		fmt.Fprintf(&b, "        - {cron: %q, time_zone: %s, idle_count: %d}\n", p.cron, zone, p.hosts)
	}
	return b.String()
}
