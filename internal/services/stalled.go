package services

import (
	"errors"
	"sync"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// stalledErrors remembers which services have stalled jobs that cannot be failed, so that each is logged once and not with every sweep. The zero
// value has none.
type stalledErrors struct {
	mu sync.Mutex
	// refused says of a service whether its table refuses, which lasts until a person changes something, or is away.
	refused map[string]bool
}

// isNew notes the outcome of a look, and reports whether it is an error of another kind than that of the look before.
func (s *stalledErrors) isNew(service string, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, failed := s.refused[service]
	if err == nil {
		delete(s.refused, service)
		return false
	}
	if s.refused == nil {
		s.refused = map[string]bool{}
	}
	s.refused[service] = errors.Is(err, lifecycle.ErrRefused)
	return !failed || before != s.refused[service]
}
