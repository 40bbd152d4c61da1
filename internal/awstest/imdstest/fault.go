package imdstest

import (
	"net/http"
	"strings"
)

// Fault makes requests fail.
type Fault struct {
	// Path begins the paths of the requests, such as "/latest/meta-data/iam"; empty: all.
	Path string
	// Status is the answer; 0: none comes until the caller goes away.
	Status int
	// Times is how many requests; 0: all, until Heal.
	Times int
}

// Fail makes requests fail from now on. The newest fault that fits counts.
func (s *Service) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

// Heal ends all faults.
func (s *Service) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// faultOf takes one time off the fault of the path.
func (s *Service) faultOf(path string) (status int, found bool) {
	for i := len(s.faults) - 1; i >= 0; i-- {
		f := &s.faults[i]
		if !strings.HasPrefix(path, f.Path) {
			continue
		}
		status := f.Status
		if f.Times == 1 {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
		} else if f.Times > 1 {
			f.Times--
		}
		return status, true
	}
	return 0, false
}

// hang answers nothing.
func hang(r *http.Request) { <-r.Context().Done() }
