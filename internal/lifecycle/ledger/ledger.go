// Package ledger holds the rows of the limits on hosts.
package ledger

import (
	"slices"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Quota holds what counts against one limit on hosts: a Reservation for each request that has hosts or
// is about to get them, or, for a pool's maximum, for each launch. It is one row, written under its version,
// so that no number of replicas together exceeds the limit.
type Quota struct {
	// Name is that of the limit: see Name.
	Name         string        `json:"name"`
	Reservations []Reservation `json:"entries,omitempty"`
	// AuditedAt is when the reservations were last compared with the hosts that exist.
	AuditedAt time.Time `json:"lookedAt,omitzero"`
	Version   int64     `json:"version"`
}

// Reservation is the part of a limit that one request has.
type Reservation struct {
	Repository string `json:"repository"`
	RunID      string `json:"runId"`
	RequestID  string `json:"requestId"`
	// Launch is the number of the request's launch; 0 in a ledger of requests.
	Launch int `json:"launch,omitempty"`
	// Hosts is how many hosts the request may take, or the launch makes.
	Hosts int `json:"hosts"`
	// HostKeys are those of the hosts that a launch has made, as far as they are known.
	// After a launch whose answer was lost there may be fewer than Hosts.
	HostKeys []string `json:"hostKeys,omitempty"`
	// At is when the reservation was made, or when the launch was found to be cut short.
	At time.Time `json:"at"`
}

// BelongsTo reports whether the reservation is for a launch of a request, or, with 0, for the request itself.
func (e Reservation) BelongsTo(q lifecycle.Request, launch int) bool {
	return e.same(Reservation{Repository: q.Repository, RunID: q.RunID, RequestID: q.RequestID, Launch: launch})
}

// same reports whether both reservations are for the same request and launch.
func (e Reservation) same(o Reservation) bool {
	return e.RequestID == o.RequestID && e.RunID == o.RunID && e.Repository == o.Repository && e.Launch == o.Launch
}

// Used is how many hosts all reservations are for.
func (a Quota) Used() int {
	used := 0
	for _, e := range a.Reservations {
		used += e.Hosts
	}
	return used
}

// ReservationOf finds the reservation for a request's launch, or, with 0, for the
// request itself. If there is none it returns one for 0 hosts.
func (a Quota) ReservationOf(q lifecycle.Request, launch int) Reservation {
	for _, e := range a.Reservations {
		if e.BelongsTo(q, launch) {
			return e
		}
	}
	return Reservation{}
}

// With returns the ledger with e in place of the reservation for the same request
// and launch. A reservation for 0 hosts is removed.
func (a Quota) With(e Reservation) Quota {
	entries := slices.Clone(a.Reservations)
	i := slices.IndexFunc(entries, e.same)
	switch {
	case i >= 0 && e.Hosts > 0:
		entries[i] = e
	case i >= 0:
		entries = slices.Delete(entries, i, i+1)
	case e.Hosts > 0:
		entries = append(entries, e)
	}
	a.Reservations = entries
	return a
}

// Kind says what the hosts that count against a limit have in common.
type Kind string

// The kinds of limits.
const (
	OfRepository Kind = "repository" // the repository that they serve
	OfOwner      Kind = "owner"      // the owner of the repository that they serve
	OfPool       Kind = "pool"       // the pool that they belong to
)

// Name names the ledger of a repository, an owner or a pool.
func Name(kind Kind, of string) string { return string(kind) + "/" + of }
