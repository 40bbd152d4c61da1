// Package breaker holds the rows by which the launches of a pool are paused.
package breaker

import "time"

// Row counts the interruptions of a pool's spot hosts: see policy.SpotBreaker. It is one row for each pool, written under
// its version.
type Row struct {
	Pool string `json:"pool"`
	// Interruptions are the last interruptions, the oldest first.
	Interruptions []Interruption `json:"interrupted,omitempty"`
	// OpenUntil is until when the pool launches on-demand hosts in the place of
	// spot ones, where a request allows it.
	OpenUntil time.Time `json:"openUntil,omitzero"`
	// RefusedTemplate is the launch template version of a host whose version of actions/runner GitHub refused,
	// and RefusedAt when controld saw that; zero if it never did.
	RefusedTemplate string    `json:"refusedTemplate,omitempty"`
	RefusedAt       time.Time `json:"refusedAt,omitzero"`
	Version         int64     `json:"version"`
}

// Interruption is one host that EC2 announced to take back.
type Interruption struct {
	InstanceID string `json:"instanceId"`
	// At is when controld received the announcement.
	At time.Time `json:"at"`
}
