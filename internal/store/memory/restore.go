package memory

import (
	"maps"
	"slices"

	"github.com/remuda-ci/remuda/internal/store"
)

// Restore gives rows of a kind the state that they have in another store. A row that the other store lacks is
// removed. It asks which for the keys of both stores, in order.
func (s *Store) Restore(k *store.Kind, from *Store, which func(store.Key) bool) (changed []store.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, then := s.tables[k.ID], from.tables[k.ID]
	keys := slices.Concat(slices.Collect(maps.Keys(now)), slices.Collect(maps.Keys(then)))
	slices.SortFunc(keys, compareKeys)
	for _, key := range slices.Compact(keys) {
		row, ok := then[key]
		if old, had := now[key]; had == ok && (!ok || *k.Version(old) == *k.Version(row)) || !which(key) {
			continue
		}
		if ok {
			s.put(k, key, row)
		} else {
			delete(now, key)
			s.changes++
		}
		changed = append(changed, key)
	}
	return changed
}
