package memory

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/store/row"
)

// Dump returns everything in the store as text, a row a line in a fixed order:
// two stores with equal dumps answer alike. Secrets stand in it as hashes.
func (s *Store) Dump() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.dumpState(&b)
	for _, e := range s.events {
		dumpRow(&b, "event", e)
	}
	return b.String()
}

// Fingerprint returns a hash of all on which decisions depend: Dump without
// the history, which only people read.
func (s *Store) Fingerprint() [sha256.Size]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.dumpState(&b)
	return sha256.Sum256([]byte(b.String()))
}

func (s *Store) dumpState(b *strings.Builder) {
	for _, key := range slices.Sorted(maps.Keys(s.instances)) {
		dumpRow(b, "instance", redacted(*s.instances[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(s.reports)) {
		dumpRow(b, "report", s.reports[key])
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.requests), compareRequestKeys) {
		dumpRow(b, "request", s.requests[key])
	}
	for _, key := range slices.Sorted(maps.Keys(s.leases)) {
		dumpRow(b, "lease", s.leases[key])
	}
	for _, key := range slices.Sorted(maps.Keys(s.services)) {
		dumpRow(b, "service", s.services[key])
	}
	s.dumpJobs(b)
}

func (s *Store) dumpJobs(b *strings.Builder) {
	for _, key := range slices.Sorted(maps.Keys(s.webhooks)) {
		dumpRow(b, "webhook", s.webhooks[key])
	}
	for _, key := range slices.Sorted(maps.Keys(s.jobs)) {
		dumpRow(b, "job", s.jobs[key])
	}
	for _, key := range slices.Sorted(maps.Keys(s.turns)) {
		dumpRow(b, "turns", s.turns[key])
	}
	for _, key := range workIn(s.work) {
		dumpRow(b, "work", s.work[key])
	}
	for _, key := range workIn(s.workers) {
		dumpRow(b, "worker", s.workers[key])
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.seen), compareSeenKeys) {
		dumpRow(b, "seen", []any{key.kind, key.id, s.seen[key]})
	}
	s.dumpGuards(b)
}

func (s *Store) dumpGuards(b *strings.Builder) {
	if s.hold.Version > 0 {
		dumpRow(b, "hold", s.hold)
	}
	for _, key := range slices.Sorted(maps.Keys(s.breakers)) {
		dumpRow(b, "breaker", s.breakers[key])
	}
	for _, key := range slices.Sorted(maps.Keys(s.accounts)) {
		dumpRow(b, "account", s.accounts[key])
	}
}

func compareSeenKeys(a, b seenKey) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
}

func compareRequestKeys(a, b requestKey) int {
	return cmp.Or(cmp.Compare(a.repository, b.repository), cmp.Compare(a.runID, b.runID), cmp.Compare(a.requestID, b.requestID))
}

func dumpRow(b *strings.Builder, table string, row any) {
	// Rows are plain data with years that RFC 3339 knows: they marshal.
	text, _ := json.Marshal(row)
	fmt.Fprintf(b, "%s %s\n", table, text)
}

func redacted(r lifecycle.Record) lifecycle.Record {
	r = row.Record(r)
	if r.Registration != nil {
		r.Registration.Secret = lifecycle.Secret(fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(r.Registration.Secret.Reveal())))[:23])
	}
	return r
}
