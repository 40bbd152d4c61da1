package row

import (
	"github.com/remuda-ci/remuda/internal/services/model"
)

// WorkJob returns j in the form of the store.
func WorkJob(j model.Job) model.Job {
	j.Payload = list(j.Payload)
	j.CreatedAt, j.StartedAt, j.ActivityAt, j.EndedAt = utc(j.CreatedAt), utc(j.StartedAt), utc(j.ActivityAt), utc(j.EndedAt)
	j.DueAt, j.ExpiresAt = utc(j.DueAt), utc(j.ExpiresAt)
	return j
}

// Worker returns w in the form of the store.
func Worker(w model.Worker) model.Worker {
	w.HeartbeatAt, w.ExpiresAt = utc(w.HeartbeatAt), utc(w.ExpiresAt)
	return w
}
