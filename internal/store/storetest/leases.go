package storetest

import (
	"testing"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var _ = add(group{name: "leases", tests: []suiteTest{
	{"a lease goes from holder to holder by its version", testLease},
}})

func testLease(t *testing.T, w world) {
	_, err := w.Store.Lease(t.Context(), "sweep")
	wantError(t, "read before anybody held it", err, lifecycle.ErrNotFound)
	take := func(holder string, version int64) (lifecycle.Lease, error) {
		return w.Store.TakeLease(t.Context(), lifecycle.Lease{Name: "sweep", Holder: holder, Version: version})
	}
	_, err = take("a", 1)
	wantError(t, "take with a version before anybody held it", err, lifecycle.ErrConflict)

	for i, holder := range []string{"a", "a", "b"} {
		version := int64(i)
		got, err := take(holder, version)
		if err != nil {
			t.Fatal(err)
		}
		want := lifecycle.Lease{Name: "sweep", Holder: holder, Version: version + 1}
		equal(t, "what take returns", want, got)
		stored, err := w.Store.Lease(t.Context(), "sweep")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "lease", want, stored)
		for _, stale := range []int64{-1, version, version + 2} {
			_, err := take("c", stale)
			wantError(t, "take with another version", err, lifecycle.ErrConflict)
		}
	}
	_, err = w.Store.Lease(t.Context(), "other")
	wantError(t, "another lease", err, lifecycle.ErrNotFound)
}
