package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// Stalled says which jobs of a table have a worker that went silent, and what is written into their rows.
type Stalled struct {
	// Column has the time of the worker's last sign of life. Workers must renew it more often than After.
	Column string `yaml:"column"`
	// After is how old that time is at least; 0: no row is written. Shorter than a worker's longest quiet step, and good jobs fail.
	After time.Duration `yaml:"after"`
	// Key is the column that identifies a row.
	Key string `yaml:"key"`
	// StateColumn is set to Failed.
	StateColumn string `yaml:"state_column"`
	Failed      string `yaml:"failed"`
}

const (
	minStalled = time.Minute // two heartbeats of a worker
	maxStalled = 24 * time.Hour
)

// SetDefaults are those of a table as in docs/services.md.
func (s *Stalled) SetDefaults() {
	s.Column, s.After, s.Key, s.StateColumn, s.Failed = "heartbeat_at", model.JobSilence, "id", "status", "failed"
}

// StalledJobs says which jobs in the table of a service are marked as failed, since their worker went silent; nil: none. Without a section of
// its own a table is taken for one as in docs/services.md, if the filter of busy jobs is of that kind. Whether it has the other columns shows
// when it is asked.
func (c *Config) StalledJobs(service string) *Stalled {
	p := c.Services[service].Queue.PostgREST
	switch {
	case p == nil:
		return nil
	case p.Stalled == nil:
		s := &Stalled{}
		s.SetDefaults()
		s.After = max(s.After, 2*c.Sweeps.Services)
		if !p.failedIsNotBusy(*s) {
			return nil
		}
		return s
	case p.Stalled.After == 0:
		return nil
	}
	return p.Stalled
}

// failedIsNotBusy reports whether a row that is marked certainly leaves the busy jobs. One that stayed would be marked at each look.
func (p PostgREST) failedIsNotBusy(s Stalled) bool {
	return slices.ContainsFunc(p.busyFilters(s.StateColumn), func(filter string) bool {
		operator, states, _ := strings.Cut(filter, ".")
		busy := strings.Split(strings.Trim(states, "()"), ",")
		return slices.Contains([]string{"eq", "in"}, operator) &&
			!slices.ContainsFunc(busy, func(state string) bool { return strings.Trim(state, `"`) == s.Failed })
	})
}

// busyFilters are the filters of a column that busy jobs have.
func (p PostgREST) busyFilters(column string) []string {
	_, query, _ := strings.Cut(p.Busy, "?")
	filters, err := url.ParseQuery(query)
	if err != nil {
		return nil
	}
	return filters[column]
}

func (s Stalled) validate(at strictyaml.Place, of PostgREST) {
	for key, column := range map[string]string{"column": s.Column, "key": s.Key, "state_column": s.StateColumn} {
		if !restColumn.MatchString(column) {
			at.At(key).Errorf("is %.80q; write a column of 1 to 63 of a-z 0-9 _", column)
		}
	}
	if !restState.MatchString(s.Failed) {
		at.At("failed").Errorf("is %.80q; write a value of 1 to 63 of a-z A-Z 0-9 _ - and space", s.Failed)
	}
	if s.After == 0 {
		return
	}
	at.At("after").Between(s.After, minStalled, maxStalled)
	if len(of.busyFilters(s.StateColumn)) == 0 {
		at.At("state_column").Errorf("is %s, and busy has no filter of that column: a job that failed would stay busy; write one such as %s=eq.running", s.StateColumn, s.StateColumn)
	}
}
