package aws

import "time"

// OffsetOf is offset, for a test that sets a clock.
var OffsetOf = offset

// Note is note, for a test of calls that take long.
func (c *Clock) Note(given, came time.Time, took time.Duration) { c.note(answer{given, came}, took) }
