package row

import "github.com/remuda-ci/remuda/internal/lifecycle"

// Service returns s in the form of the store.
func Service(s lifecycle.Service) lifecycle.Service {
	s.CountedAt, s.CheckedAt = utc(s.CountedAt), utc(s.CheckedAt)
	s.Queued, s.Busy = count(s.Queued), count(s.Busy)
	return s
}

func count(n *int) *int {
	if n == nil {
		return nil
	}
	own := *n
	return &own
}
