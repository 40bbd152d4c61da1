package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

var _ = add(group{name: "instances", tests: []suiteTest{
	{"a record comes back as it was written", testInstanceRoundTrip},
	{"empty attributes come back empty", testInstanceEmpty},
	{"times come back in UTC, to the nanosecond", testInstanceTimes},
	{"a host key is taken once", testInstanceExists},
	{"an update needs the stored version", testInstanceVersion},
	{"an update replaces every attribute", testInstanceReplace},
	{"rows share nothing with their callers", testInstanceAliasing},
	{"an unknown host is not found", testInstanceNotFound},
	{"a batch leaves out what is missing", testInstanceBatch},
}})

func testInstanceRoundTrip(t *testing.T, w world) {
	want := fullRecord("a")
	isFull(t, want)
	w.create(t, want)
	equal(t, "record", want, w.instance(t, "a"))
}

func testInstanceEmpty(t *testing.T, w world) {
	want := lifecycle.Record{HostKey: "a", InstanceID: "i-a", Pool: "default", State: lifecycle.StateCreated, Version: 1}
	r := want
	r.Version = 0 // a new record has version 1, whatever the caller says
	r.Labels = []string{}
	w.create(t, r)
	equal(t, "record", want, w.instance(t, "a"))
}

func testInstanceTimes(t *testing.T, w world) {
	r := fullRecord("a")
	r.Threshold = start.In(time.FixedZone("elsewhere", 2*60*60))
	r.CreatedAt = time.Now() // with a monotonic reading
	w.create(t, r)
	got := w.instance(t, "a")
	if !got.Threshold.Equal(start) || !got.CreatedAt.Equal(r.CreatedAt) {
		t.Errorf("times: got %v and %v, want %v and %v", got.Threshold, got.CreatedAt, start, r.CreatedAt)
	}
	if got.CreatedAt != got.CreatedAt.Round(0) {
		t.Error("createdAt still has a monotonic reading")
	}
	isUTC(t, "threshold", got.Threshold)
	isUTC(t, "createdAt", got.CreatedAt)
	isUTC(t, "the registration's expiry", got.Registration.ExpiresAt)

	updated := w.update(t, r)
	isUTC(t, "threshold as update returns it", updated.Threshold)
	equal(t, "what update returns and what is stored", updated, w.instance(t, "a"))
}

func testInstanceExists(t *testing.T, w world) {
	w.create(t, fullRecord("a"))
	wantError(t, "second create", w.Store.CreateInstance(t.Context(), pooledRecord("a")), lifecycle.ErrExists)
	equal(t, "record", fullRecord("a"), w.instance(t, "a"))
}

func testInstanceVersion(t *testing.T, w world) {
	w.create(t, fullRecord("a"))
	r := w.update(t, fullRecord("a"))
	if r.Version != 2 {
		t.Fatalf("version after one update: got %d, want 2", r.Version)
	}
	for _, version := range []int64{-1, 0, 1, 3} {
		stale := r
		stale.Version, stale.Reason = version, "must not be written"
		_, err := w.Store.UpdateInstance(t.Context(), stale)
		wantError(t, "update with another version", err, lifecycle.ErrConflict)
	}
	equal(t, "record", r, w.instance(t, "a"))

	_, err := w.Store.UpdateInstance(t.Context(), fullRecord("nobody"))
	wantError(t, "update of an unknown host", err, lifecycle.ErrConflict)
	_, err = w.Store.Instance(t.Context(), "nobody")
	wantError(t, "read of an unknown host", err, lifecycle.ErrNotFound)
}

func testInstanceReplace(t *testing.T, w world) {
	w.create(t, fullRecord("a"))
	want := lifecycle.Record{HostKey: "a", InstanceID: "i-a", Pool: "default", State: lifecycle.StateTerminated, Version: 1}
	got := w.update(t, want)
	want.Version = 2
	equal(t, "what update returns", want, got)
	equal(t, "record", want, w.instance(t, "a"))
}

func testInstanceAliasing(t *testing.T, w world) {
	scribble := func(r lifecycle.Record) {
		r.Labels[0] = "scribbled"
		r.Registration.Secret = "scribbled"
	}
	r := fullRecord("a")
	w.create(t, r)
	scribble(r)
	equal(t, "record after the caller changed its own", fullRecord("a"), w.instance(t, "a"))
	scribble(w.instance(t, "a"))
	equal(t, "record after a reader changed its own", fullRecord("a"), w.instance(t, "a"))

	r = fullRecord("a")
	updated := w.update(t, r)
	scribble(r)
	scribble(updated)
	want := fullRecord("a")
	want.Version = 2
	equal(t, "record after both sides of an update changed their own", want, w.instance(t, "a"))
	scribble(all(t, 0, func(of lifecycle.PageOf) (lifecycle.Page[lifecycle.Record], error) {
		return w.Store.InstancesOfRun(t.Context(), runID, of)
	})[0])
	equal(t, "record after a lister changed its own", want, w.instance(t, "a"))
}

func testInstanceNotFound(t *testing.T, w world) {
	w.create(t, fullRecord("a"))
	for _, key := range []string{"", "A", "a ", "aa", "%"} {
		_, err := w.Store.Instance(t.Context(), key)
		wantError(t, "read of "+key, err, lifecycle.ErrNotFound)
	}
}

// testInstanceBatch asks for more keys than a DynamoDB batch takes (100).
func testInstanceBatch(t *testing.T, w world) {
	present := hostKeys(250)
	for _, key := range present {
		w.create(t, pooledRecord(key))
	}
	asked := slices.Concat([]string{"missing-1", "missing-1"}, present, []string{"missing-2"})
	got, err := w.Store.Instances(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	keys := keysOf(got)
	slices.Sort(keys)
	equal(t, "host keys", present, keys)

	for name, asked := range map[string][]string{"none": nil, "only missing ones": {"missing-1"}} {
		got, err := w.Store.Instances(t.Context(), asked)
		if err != nil || len(got) != 0 {
			t.Errorf("%s: got %d records and error %v, want none of either", name, len(got), err)
		}
	}
}
