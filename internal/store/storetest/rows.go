package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const (
	repository = "acme/site"
	runID      = "4711"
	// secret is in the registration of every pooled and running record here.
	secret = "do-not-print-me"
)

func (w world) report(t *testing.T, p lifecycle.Report) {
	t.Helper()
	if err := w.ForHost(p.HostKey).PutReport(t.Context(), p); err != nil {
		t.Fatalf("PutReport(%s): %v", p.HostKey, err)
	}
}

func (w world) addEvents(t *testing.T, events ...lifecycle.Event) {
	t.Helper()
	if err := w.Store.AddEvents(t.Context(), events); err != nil {
		t.Fatalf("AddEvents: %v", err)
	}
}

// isUTC is for times, which must come back in UTC and not only as the same moment.
func isUTC(t *testing.T, what string, at time.Time) {
	t.Helper()
	if !at.IsZero() && at.Location() != time.UTC {
		t.Errorf("%s is in %s, want UTC", what, at.Location())
	}
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// must is a value that comes without an error, or the end of the test: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// hostKeys are n keys in order.
func hostKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("host-%04d", i)
	}
	return keys
}

func keysOf(records []lifecycle.Record) []string {
	var keys []string
	for _, r := range records {
		keys = append(keys, r.HostKey)
	}
	return keys
}

// all goes through the pages of a listing.
func all[T any](t *testing.T, limit int, list func(lifecycle.PageOf) (lifecycle.Page[T], error)) []T {
	t.Helper()
	var items []T
	of := lifecycle.PageOf{Limit: limit}
	for range 10_000 {
		page, err := list(of)
		if err != nil {
			t.Fatalf("page after %q: %v", of.After, err)
		}
		if len(page.Items) > of.Size() {
			t.Fatalf("page after %q: %d items, at most %d asked for", of.After, len(page.Items), of.Size())
		}
		items = append(items, page.Items...)
		if page.Next == "" {
			return items
		}
		of.After = page.Next
	}
	t.Fatal("the pages do not end")
	return nil
}
