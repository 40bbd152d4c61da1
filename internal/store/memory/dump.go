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
	"github.com/remuda-ci/remuda/internal/store"
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
	for _, k := range store.Kinds {
		for _, key := range slices.SortedFunc(maps.Keys(s.tables[k.ID]), compareKeys) {
			dumpRow(b, k.Name, redacted(k.Copy(s.tables[k.ID][key])))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.reports)) {
		dumpRow(b, "report", s.reports[key])
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.seen), compareSeenKeys) {
		dumpRow(b, "seen", []any{key.kind, key.id, s.seen[key]})
	}
}

func compareSeenKeys(a, b seenKey) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
}

func dumpRow(b *strings.Builder, table string, row any) {
	// Rows are plain data with years that RFC 3339 knows: they marshal.
	text, _ := json.Marshal(row)
	fmt.Fprintf(b, "%s %s\n", table, text)
}

// redacted returns the row, which is a copy, with a hash for the secret in it.
func redacted(row store.Row) store.Row {
	if r, ok := row.(*lifecycle.Record); ok && r.Registration != nil {
		r.Registration.Secret = lifecycle.Secret(fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(r.Registration.Secret.Reveal())))[:23])
	}
	return row
}
