package row

import "github.com/remuda-ci/remuda/internal/lifecycle"

// Job returns j in the form of the store.
func Job(j lifecycle.Job) lifecycle.Job {
	j.Labels = list(j.Labels)
	j.QueuedAt, j.StartedAt, j.EndedAt, j.NotBefore = utc(j.QueuedAt), utc(j.StartedAt), utc(j.EndedAt), utc(j.NotBefore)
	j.DueAt, j.ExpiresAt = utc(j.DueAt), utc(j.ExpiresAt)
	return j
}

// Webhook returns w in the form of the store.
func Webhook(w lifecycle.Webhook) lifecycle.Webhook {
	w.ReceivedAt, w.DueAt, w.ExpiresAt = utc(w.ReceivedAt), utc(w.DueAt), utc(w.ExpiresAt)
	if w.Job != nil {
		job := *w.Job
		job.Labels = list(job.Labels)
		job.QueuedAt, job.StartedAt, job.CompletedAt = utc(job.QueuedAt), utc(job.StartedAt), utc(job.CompletedAt)
		w.Job = &job
	}
	if w.Run != nil {
		run := *w.Run
		w.Run = &run
	}
	return w
}

// Turns returns t in the form of the store.
func Turns(t lifecycle.SlotTable) lifecycle.SlotTable {
	t.Open = list(t.Open)
	for i := range t.Open {
		t.Open[i].AssignedAt = utc(t.Open[i].AssignedAt)
	}
	return t
}
