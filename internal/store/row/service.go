package row

import (
	"github.com/remuda-ci/remuda/internal/services/model"
)

// Service returns s in the form of the store.
func Service(s model.Service) model.Service {
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
