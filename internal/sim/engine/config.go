package engine

import "time"

// Config is what one simulation is made of. Zero fields take their defaults.
type Config struct {
	Seed uint64
	// Hosts is about how many machines live at once; default 6.
	Hosts int
	// Chaos is how long faults and new runs go on; default 20 minutes of
	// virtual time. Afterwards everything must settle.
	Chaos time.Duration
	// Log adds the log lines of the daemons to the trace, which costs time.
	Log bool
	// Keep is how many events the trace of a violation shows; default 200.
	Keep int
}

// WithDefaults returns the configuration with defaults in place of zero fields.
func (c Config) WithDefaults() Config {
	if c.Hosts <= 0 {
		c.Hosts = 6
	}
	if c.Chaos <= 0 {
		c.Chaos = 20 * time.Minute
	}
	if c.Keep <= 0 {
		c.Keep = 200
	}
	return c
}
