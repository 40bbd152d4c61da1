// Package replicas holds the rows by which replicas of controld know of each other.
package replicas

import "time"

// Lease is a row that says which replica sweeps. A holder is dead when Version
// stands still for the length of a lease on the watcher's own clock, so no two
// clocks are compared. A lease only saves work; safety never depends on it.
type Lease struct {
	Name    string `json:"name"`
	Holder  string `json:"holder"`
	Version int64  `json:"version"`
}

// Row is the row of the replicas that are alive. A replica whose beats stand still is gone, by the clock of the one
// that looks. It only says how many share a limit; safety never depends on it.
type Row struct {
	Alive   []Replica `json:"alive,omitempty"`
	Version int64     `json:"version"`
}

// Replica is one of them. Beats counts how often it has said that it lives. One of an older version says only that.
type Replica struct {
	Name      string    `json:"name"`
	Beats     int64     `json:"beats"`
	Version   string    `json:"version,omitempty"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// ClockOffset is how far the store's clock is ahead of that of its machine.
	ClockOffset time.Duration `json:"clockOffset,omitempty"`
}
