package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/policy"
)

// wrongPeriod tells all that is wrong with a period, each at its field.
func wrongPeriod(at strictyaml.Place, parse func() (policy.Period, error)) {
	_, err := parse()
	var wrong policy.PeriodErrors
	if errors.As(err, &wrong) {
		for _, e := range wrong {
			at.At(e.Field).Errorf("is wrong: %s", e.Rule)
		}
	}
}

// periodWarnings are sentences about periods, of the list at key, that are hardly what was meant.
func periodWarnings(key string, periods []policy.Period) []string {
	var warnings []string
	for i, p := range periods {
		if brief := p.Brief(); brief > 0 {
			warnings = append(warnings, fmt.Sprintf("%s[%d] (%s) holds for %s", key, i, p.Cron, instead(brief)))
		}
		for j, before := range periods[:i] {
			if before.Covers(p) {
				warnings = append(warnings, fmt.Sprintf("%s[%d] (%s) never counts: [%d] (%s) comes before it, and holds whenever it does", key, i, p.Cron, j, before.Cron))
				break
			}
		}
	}
	return warnings
}

// instead is how long a period holds that is brief, and what to write for a longer one.
func instead(brief time.Duration) string {
	switch brief {
	case time.Minute:
		return "a minute at most each time; write * for the minute if all of the hour is meant"
	case time.Second:
		return "a second each time; write * for the second if all of the minute is meant"
	}
	return fmt.Sprintf("%s at most each time; write * for the second if all of the minute is meant", brief)
}

// scheduleWarnings are those of scale-down and of the warm pools. What is wrong with
// a period was refused before.
func (c *Config) scheduleWarnings() []string {
	var warnings []string
	if c.ScaleDown != nil {
		if p, err := c.ScaleDown.Policy(); err == nil {
			warnings = append(warnings, periodWarnings("scale_down.idle", p.Idle)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Pools)) {
		if w := c.Pools[name].Warm; w != nil {
			if p, err := w.Policy(); err == nil {
				warnings = append(warnings, periodWarnings("pools."+name+".warm.schedules", p.Schedules)...)
			}
		}
	}
	return warnings
}
