package host

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/host/dockerstore"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

var dockerCache = cache.Spec{Name: "images", Holds: cache.HoldsDocker, Size: 7 << 20, Keep: 2 * time.Hour}

// dockerHost is a host of a privileged pool, with a docker of its own.
func dockerHost(t *testing.T, l layout, specs ...cache.Spec) *Host {
	t.Helper()
	h := &Host{o: Options{Dir: t.TempDir(), Systemd: &Systemd{}, Caches: specs}, layout: l, log: hclog.NewNullLogger()}
	if err := os.MkdirAll(h.path("state/tasks"), 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestImagesToKeep: images are kept for the run that the start of the clean-up names, and only if its release says so.
func TestImagesToKeep(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		specs []cache.Spec
		start startRecord
		want  *dockerstore.Cache
	}{
		"kept": {[]cache.Spec{dockerCache}, startRecord{KeepCaches: "images", RunBefore: "acme/shop/41"},
			&dockerstore.Cache{Key: dockerCache.Key("acme/shop"), Name: "images", Size: 7 << 20, Keep: 2 * time.Hour}},
		"not kept":          {[]cache.Spec{dockerCache}, startRecord{RunBefore: "acme/shop/41"}, nil},
		"another is kept":   {[]cache.Spec{dockerCache}, startRecord{KeepCaches: "go", RunBefore: "acme/shop/41"}, nil},
		"no such cache":     {nil, startRecord{KeepCaches: "images", RunBefore: "acme/shop/41"}, nil},
		"one of files":      {[]cache.Spec{{Name: "images", Paths: []string{"~/x"}}}, startRecord{KeepCaches: "images", RunBefore: "acme/shop/41"}, nil},
		"an unknown run":    {[]cache.Spec{dockerCache}, startRecord{KeepCaches: "images"}, nil},
		"a run without one": {[]cache.Spec{dockerCache}, startRecord{KeepCaches: "images", RunBefore: "41"}, nil},
	} {
		h := dockerHost(t, nil, tt.specs...)
		data, err := json.Marshal(tt.start)
		if err == nil {
			err = os.WriteFile(h.path("state/tasks/clean.json"), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, h.imagesToKeep(h.cachesToKeep())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	h := dockerHost(t, nil, dockerCache)
	if h.imagesToKeep([]string{"images"}) != nil {
		t.Error("without the file of its start images are kept")
	}
}

// settling is a layout whose docker does what a test says.
type settling struct {
	layout
	outcome          dockerstore.Outcome
	keepErr, dropErr error
	dropped          int
}

func (s *settling) keepImages(context.Context, dockerstore.Cache) (dockerstore.Outcome, error) {
	return s.outcome, s.keepErr
}

func (s *settling) removeImages(context.Context) error {
	s.dropped++
	return s.dropErr
}

// TestKeepImages: what cannot be kept is deleted, and a host whose images cannot be deleted is not clean.
func TestKeepImages(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	for name, tt := range map[string]struct {
		s       settling
		dropped int
		want    error
	}{
		"kept":            {settling{outcome: dockerstore.Outcome{Kept: true, Dropped: []string{"x"}}}, 0, nil},
		"refused":         {settling{}, 0, nil},
		"not kept":        {settling{keepErr: fault}, 1, nil},
		"and not deleted": {settling{keepErr: fault, dropErr: fault}, 1, fault},
	} {
		h := dockerHost(t, &tt.s, dockerCache)
		if err := h.keepImages(t.Context(), dockerstore.Cache{}); !errors.Is(err, tt.want) || tt.s.dropped != tt.dropped {
			t.Errorf("%s: %v, deleted %d times", name, err, tt.s.dropped)
		}
	}
}

// TestReportOfImages: the report lists the cache of docker as any other, once after each clean-up, and no run attaches it.
func TestReportOfImages(t *testing.T) {
	t.Parallel()
	h := dockerHost(t, nil, dockerCache)
	cleaned := time.Unix(100, 0)
	h.readHeldCaches(cleaned)
	if h.held.list != "" {
		t.Errorf("without one: %q", h.held.list)
	}
	text := `{"key":"` + dockerCache.Key("acme/shop") + `","name":"images","bytes":17,"committedAt":"2026-03-04T05:06:07Z"}`
	if err := os.WriteFile(filepath.Join(h.o.Dir, "state/docker-cache.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h.readHeldCaches(cleaned.Add(time.Second))
	want := cache.ListOf(cache.Held{Key: dockerCache.Key("acme/shop"), Bytes: 17, CommittedAt: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)})
	if h.held.list != want || h.held.bytes != 17 {
		t.Errorf("held %q of %d bytes, want %q", h.held.list, h.held.bytes, want)
	}
	if h.cacheStore() != nil || len(h.cachesOf("acme/shop")) != 0 {
		t.Error("it is a directory of jobs")
	}
}
