package dockerstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// daemon answers as docker does, as far as this package asks. TestDocker of package reset asks the real one.
type daemon struct {
	mu      sync.Mutex
	images  []image
	builds  []int64
	refuses string // a path that it refuses
	stuck   bool   // it deletes no image
	root    string // of its files
	driver  string // overlay2 if it is empty
	layers  map[string][]string
	calls   []string
}

func (d *daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	path := r.URL.Path
	if path != "/_ping" {
		path = strings.TrimPrefix(path, "/v1.41")
	}
	d.calls = append(d.calls, r.Method+" "+path)
	w.Header().Set("Api-Version", "1.41")
	if d.refuses != "" && strings.HasPrefix(path, d.refuses) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, `{"message":"no\nway %s"}`, strings.Repeat("x", 1000))
		return
	}
	var answer any = struct{}{}
	switch {
	case path == "/images/json":
		answer = d.images
	case path == "/info":
		answer = map[string]string{"Driver": cmp.Or(d.driver, overlay2), "DockerRootDir": d.root}
	case strings.HasPrefix(path, "/images/") && strings.HasSuffix(path, "/json"):
		id := strings.TrimSuffix(strings.TrimPrefix(path, "/images/"), "/json")
		answer = map[string]any{"RootFS": map[string]any{"Layers": d.layers[id]}}
	case path == "/system/df":
		u := usage{Images: d.images}
		for _, i := range d.images {
			u.LayersSize += i.Size
		}
		for _, b := range d.builds {
			u.BuildCache = append(u.BuildCache, struct {
				Size   int64
				Shared bool
			}{b, false})
		}
		answer = u
	case path == "/build/prune":
		if r.URL.Query().Get("keep-storage") == "" {
			d.builds = nil
		} else if len(d.builds) > 0 {
			d.builds = d.builds[1:]
		}
	case path == "/images/prune" && !d.stuck:
		d.images = nil
	case strings.HasSuffix(path, "/tag"):
		d.tag(strings.TrimSuffix(strings.TrimPrefix(path, "/images/"), "/tag"), r.FormValue("repo")+":"+r.FormValue("tag"))
	case r.Method == http.MethodDelete && !d.stuck:
		d.remove(strings.TrimPrefix(path, "/images/"))
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (d *daemon) untag(name string) {
	for n, i := range d.images {
		d.images[n].RepoTags = slices.DeleteFunc(i.RepoTags, func(t string) bool { return t == name })
	}
}

func (d *daemon) tag(id, name string) {
	d.untag(name)
	for n, i := range d.images {
		if i.ID == id {
			d.images[n].RepoTags = append(i.RepoTags, name)
		}
	}
}

func (d *daemon) remove(ref string) {
	d.untag(ref)
	d.images = slices.DeleteFunc(d.images, func(i image) bool { return i.ID == ref })
}

// config lays out the configuration of an image without layers, and returns the id of the image.
func (d *daemon) config(t *testing.T, text string) string {
	t.Helper()
	id := digestOf([]byte(text))
	dir := filepath.Join(d.root, "image/overlay2/imagedb/content/sha256")
	check(t, os.MkdirAll(dir, 0o755))
	check(t, os.WriteFile(filepath.Join(dir, strings.TrimPrefix(id, "sha256:")), []byte(text), 0o644))
	return id
}

// named are the images by id, each with its names.
func (d *daemon) named() map[string]string {
	all := map[string]string{}
	for _, i := range d.images {
		all[i.ID] = strings.Join(slices.Sorted(slices.Values(i.RepoTags)), " ")
	}
	return all
}

func newStore(t *testing.T, d *daemon) Store {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "docker.sock"))
	check(t, err)
	s := httptest.NewUnstartedServer(d)
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return Store{Socket: l.Addr().String(), Dir: dir}
}

var machineImages = []image{{ID: "sha256:a", RepoTags: []string{"base:1", "base:latest"}, Size: 100}, {ID: "sha256:b", RepoTags: []string{"tool:1"}, Size: 100}}

// TestReset: whatever a run has done, the machine has its own images under their own names, and nothing else.
func TestReset(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		images []image
		want   map[string]string
	}{
		"nothing": {machineImages, map[string]string{"sha256:a": "base:1 base:latest", "sha256:b": "tool:1"}},
		"new images, one on another": {append(slices.Clone(machineImages), image{ID: "sha256:c"}, image{ID: "sha256:d", ParentID: "sha256:c", RepoTags: []string{"evil:1"}}),
			map[string]string{"sha256:a": "base:1 base:latest", "sha256:b": "tool:1"}},
		"a name that was moved": {[]image{{ID: "sha256:a", RepoTags: []string{"base:1"}}, {ID: "sha256:b", RepoTags: []string{"tool:1"}}, {ID: "sha256:c", RepoTags: []string{"base:latest"}}},
			map[string]string{"sha256:a": "base:1 base:latest", "sha256:b": "tool:1"}},
		"names that were exchanged": {[]image{{ID: "sha256:a", RepoTags: []string{"tool:1"}}, {ID: "sha256:b", RepoTags: []string{"base:1", "base:latest"}}},
			map[string]string{"sha256:a": "base:1 base:latest", "sha256:b": "tool:1"}},
		"no name but a run's":      {[]image{{ID: "sha256:a", RepoTags: []string{"evil:1"}}}, map[string]string{"sha256:a": "base:1 base:latest"}},
		"its images were deleted":  {[]image{{ID: "sha256:c", RepoTags: []string{noName + ":" + noName}}}, map[string]string{}},
		"an odd name of the other": {[]image{{ID: "sha256:c", RepoTags: []string{"a b/\n:x"}}}, map[string]string{}},
	} {
		d := &daemon{images: slices.Clone(machineImages), builds: []int64{1}}
		s := newStore(t, d)
		check(t, s.Record(t.Context(), "boot-1", true))
		d.images = nil
		for _, i := range tt.images {
			i.RepoTags = slices.Clone(i.RepoTags)
			d.images = append(d.images, i)
		}
		check(t, s.Reset(t.Context(), "boot-2"))
		if diff := gocmp.Diff(tt.want, d.named()); diff != "" || len(d.builds) != 0 {
			t.Errorf("%s: images (-want +got):\n%s%d layers of builds", name, diff, len(d.builds))
		}
		if found, err := s.Added(t.Context()); err != nil || len(found) != 0 {
			t.Errorf("%s: left %q, %v", name, found, err)
		}
		if recorded, settled, err := s.Known("boot-2"); !recorded || !settled || err != nil {
			t.Errorf("%s: recorded %v, settled %v, %v", name, recorded, settled, err)
		}
	}
}

// TestResetFails: a daemon that does not delete is an error, with what it says, in one line and not at length.
func TestResetFails(t *testing.T) {
	t.Parallel()
	left := []image{{ID: "sha256:c", RepoTags: []string{"evil:1"}}}
	for name, d := range map[string]*daemon{
		"images stay":     {images: left, stuck: true},
		"builds refused":  {images: left, refuses: "/build"},
		"images refused":  {images: left, refuses: "/images/json"},
		"ping is refused": {refuses: "/_ping"},
	} {
		err := newStore(t, d).Reset(t.Context(), "boot")
		if err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (Store{Socket: "/nowhere", Dir: t.TempDir()}).Reset(t.Context(), "boot"); err == nil {
		t.Error("no daemon is no error")
	}
}

// TestRecord: without docker its daemon is not asked, and what is recorded is known in its boot.
func TestRecord(t *testing.T) {
	t.Parallel()
	d := &daemon{images: machineImages}
	s := newStore(t, d)
	if recorded, _, err := s.Known("boot-1"); recorded || err != nil {
		t.Errorf("recorded %v, %v", recorded, err)
	}
	check(t, s.Record(t.Context(), "boot-1", false))
	if len(d.calls) != 0 {
		t.Errorf("docker was asked: %q", d.calls)
	}
	if found, err := s.Added(t.Context()); err != nil || len(found) != 2 {
		t.Errorf("added %q, %v", found, err)
	}
	if recorded, settled, err := s.Known("boot-2"); !recorded || settled || err != nil {
		t.Errorf("recorded %v, settled %v, %v", recorded, settled, err)
	}
	check(t, os.WriteFile(s.path(machineFile), []byte("{"), 0o600))
	if _, _, err := s.Known("boot-1"); err == nil {
		t.Error("a malformed file is known")
	}
}

// TestKeep: the bounds of what is kept, in the order in which they act.
func TestKeep(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	root := t.TempDir()
	id := func(name string) string { return (&daemon{root: root}).config(t, name) }
	of := func(name string, size int64, tags ...string) image {
		return image{ID: id(name), RepoTags: tags, Size: size}
	}
	many := make([]image, maxImages+1)
	for n := range many {
		many[n] = of(fmt.Sprint("m", n), 1, fmt.Sprint("m:", n))
	}
	used := map[string]time.Time{id("old"): at.Add(-3 * time.Hour), id("mid"): at.Add(-2 * time.Hour), id("new"): at.Add(-time.Hour)}
	three := []image{of("new", 100, "new:1"), of("old", 100, "old:1"), of("mid", 100, "mid:1")}
	for name, tt := range map[string]struct {
		images []image
		builds []int64
		size   uint64
		keep   time.Duration
		noted  string // in usedFile
		want   string
		left   int // layers of builds
		why    string
	}{
		"all":                          {images: three, builds: []int64{50}, size: 350, want: "mid new old", left: 1},
		"builds go first":              {images: three, builds: []int64{50}, size: 349, want: "mid new old"},
		"some builds go":               {images: three, builds: []int64{20, 30}, size: 330, want: "mid new old", left: 1},
		"then the oldest":              {images: three, builds: []int64{50}, size: 299, want: "mid new"},
		"the last but one":             {images: three, size: 100, want: "new"},
		"what was used is not old":     {images: three, size: 200, noted: `["` + id("old") + `","sha256:x"]`, want: "new old"},
		"nothing fits":                 {images: three, size: 99, want: ""},
		"not used for long":            {images: three, size: 1000, keep: 90 * time.Minute, want: "new"},
		"an unknown one is new":        {images: append(slices.Clone(three), of("x", 100, "x:1")), size: 100, want: "x"},
		"no name":                      {images: []image{of("x", 1), of("y", 1, noName+":"+noName), {ID: id("z"), RepoDigests: []string{"z@sha256:1"}}}, size: 100, want: "z"},
		"what another is built on":     {images: []image{of("x", 1), {ID: id("y"), ParentID: id("x"), RepoTags: []string{"y:1"}}}, size: 100, want: "x y"},
		"too many":                     {images: many, size: 1 << 30, want: "", why: "and a host keeps 2000"},
		"too many names":               {images: []image{of("x", 1, make([]string, maxNames+1)...)}, size: 1 << 30, want: "", why: "with 4001 names"},
		"a size that no number holds":  {images: three, size: 1<<64 - 1, want: "mid new old"},
		"an image of more than it all": {images: []image{of("x", 1<<62, "x:1")}, size: 100, want: ""},
	} {
		d := &daemon{images: []image{of("own", 1000, "own:1")}, root: root}
		s := newStore(t, d)
		check(t, s.Record(t.Context(), "boot-1", true))
		check(t, s.saveState(state{Key: "k", UsedAt: used}))
		if tt.noted != "" {
			check(t, os.WriteFile(s.path(usedFile), []byte(tt.noted), 0o600))
		}
		d.images, d.builds = slices.Concat(d.images, tt.images), tt.builds
		c := Cache{Key: "k", Name: "images", Size: tt.size, Keep: tt.keep}
		if c.Keep == 0 {
			c.Keep = 24 * time.Hour
		}
		o, err := s.Keep(t.Context(), c, "boot-2", at)
		check(t, err)
		var got []string
		for _, name := range []string{"old", "mid", "new", "x", "y", "z"} {
			if _, ok := d.named()[id(name)]; ok {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != tt.want || len(d.builds) != tt.left || o.Kept != (tt.why == "") || !strings.Contains(o.Reason, tt.why) {
			t.Errorf("%s: kept %.200q and %d layers, %+v", name, got, len(d.builds), o)
		}
		h, ok, err := s.Held()
		if err != nil || ok != o.Kept || h.Bytes != o.Bytes || ok && (h.Key != "k" || h.Name != "images" || !h.CommittedAt.Equal(at)) {
			t.Errorf("%s: held %+v %v, %v", name, h, ok, err)
		}
		if _, err := os.Stat(s.path(usedFile)); err == nil {
			t.Errorf("%s: what the run has used is kept for the next", name)
		}
	}
}

// TestKeepRestoresNames: a name of the machine's that no image has is its own image's again. One that an image of a trusted run has stays there.
func TestKeepRestoresNames(t *testing.T) {
	t.Parallel()
	d := &daemon{root: t.TempDir(), images: slices.Clone(machineImages)}
	s := newStore(t, d)
	check(t, s.Record(t.Context(), "boot", true))
	built := d.config(t, "built")
	d.images = []image{{ID: "sha256:a", RepoTags: []string{"base:1"}, Size: 100}, {ID: "sha256:b", Size: 100}, {ID: built, RepoTags: []string{"base:latest"}, Size: 10}}
	for _, tt := range []struct {
		size uint64
		want map[string]string
	}{
		{100, map[string]string{"sha256:a": "base:1", "sha256:b": "tool:1", built: "base:latest"}},
		{1, map[string]string{"sha256:a": "base:1 base:latest", "sha256:b": "tool:1"}},
	} {
		if o, err := s.Keep(t.Context(), Cache{Key: "k", Size: tt.size, Keep: time.Hour}, "boot", time.Now()); err != nil || !o.Kept {
			t.Errorf("%+v, %v", o, err)
		}
		if diff := gocmp.Diff(tt.want, d.named()); diff != "" {
			t.Errorf("with room for %d (-want +got):\n%s", tt.size, diff)
		}
	}
}

// TestKeepFails: after an error nothing is a new cache, and the caller deletes all.
func TestKeepFails(t *testing.T) {
	t.Parallel()
	d := &daemon{root: t.TempDir()}
	d.images = []image{{ID: d.config(t, "x"), RepoTags: []string{"x:1"}, Size: 10}}
	s := newStore(t, d)
	check(t, s.Record(t.Context(), "boot", false))
	c := Cache{Key: "k", Size: 100, Keep: time.Hour}
	for _, path := range []string{"/images", "/system/df", "/info"} {
		d.refuses = path
		if o, err := s.Keep(t.Context(), c, "boot", time.Now()); err == nil || o.Kept {
			t.Errorf("%s: %+v, %v", path, o, err)
		}
	}
	d.refuses = ""
	check(t, s.saveState(state{Key: "another"}))
	if o, err := s.Keep(t.Context(), c, "boot", time.Now()); err != nil || o.Kept || len(d.images) != 0 {
		t.Errorf("of another cache: %+v, %v, %d images", o, err, len(d.images))
	}
}

func TestIsCalled(t *testing.T) {
	t.Parallel()
	i := image{ID: "sha256:0123456789abcdef00", RepoTags: []string{"shop:latest", "shop:1"}, RepoDigests: []string{"shop@sha256:77"}}
	for name, want := range map[string]bool{
		"shop": true, "shop:1": true, "shop@sha256:77": true, "sha256:0123456789abcdef00": true, "0123456789ab": true,
		"shop:2": false, "0123456789": false, "": false, "sha256:": false, "shop@sha256:78": false,
	} {
		if i.isCalled(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func TestOlderAPI(t *testing.T) {
	t.Parallel()
	for _, tt := range [][2]string{{"1.41", "1.41"}, {"1.9", "1.9"}, {"1.47", "1.47"}, {"1.52", "1.47"}, {"2.0", "1.47"}, {"", "1.47"}, {"x/../y", "1.47"}, {"1.4x", "1.47"}} {
		if got := olderAPI(tt[0], newestAPI); got != tt[1] {
			t.Errorf("%q: %q", tt[0], got)
		}
	}
}

// TestKeepVerifies: an image whose configuration or layer differs is deleted, with what is built on it, and others stay. Each layer is read once in a boot.
func TestKeepVerifies(t *testing.T) {
	t.Parallel()
	root, diff, digest := aLayer(t)
	check(t, os.Remove(filepath.Join(diff, "etc", opaque)))
	d := &daemon{root: root, layers: map[string][]string{}}
	sound, forged := d.config(t, "sound"), d.config(t, "forged")
	check(t, os.WriteFile(filepath.Join(root, "image/overlay2/imagedb/content/sha256", strings.TrimPrefix(forged, "sha256:")), []byte("other"), 0o644))
	d.layers[sound] = []string{digest}
	s := newStore(t, d)
	check(t, s.Record(t.Context(), "boot-1", false))
	c := Cache{Key: "k", Size: 1000, Keep: time.Hour}
	for _, tt := range []struct{ boot, breaks, want string }{
		{"boot-1", "", sound},
		{"boot-1", "etc/hosts", sound}, // it was read in this boot
		{"boot-2", "", ""},
	} {
		d.images = []image{{ID: sound, RepoTags: []string{"sound:1"}, Size: 10}, {ID: forged, RepoTags: []string{"forged:1"}, Size: 10}}
		if tt.breaks != "" {
			check(t, os.WriteFile(filepath.Join(diff, tt.breaks), []byte("Content"), 0o644))
		}
		o, err := s.Keep(t.Context(), c, tt.boot, time.Now())
		check(t, err)
		_, kept := d.named()[sound]
		if kept != (tt.want != "") || len(d.images) > 1 || !o.Kept || !strings.Contains(strings.Join(o.Dropped, "\n"), "its configuration has another digest") {
			t.Errorf("in %s: %v, %+v", tt.boot, d.named(), o)
		}
	}
	// Images that are built on one that differs go with it, and it goes if a name is all that keeps it.
	parent, child := d.config(t, "parent"), d.config(t, "child")
	d.layers[parent], d.layers[child] = []string{digest}, []string{digest}
	d.images = []image{{ID: parent, Size: 10}, {ID: child, ParentID: parent, RepoTags: []string{"child:1"}, Size: 10}, {ID: d.config(t, "other"), RepoTags: []string{"other:1"}}}
	if o, err := s.Keep(t.Context(), c, "boot-3", time.Now()); err != nil || !o.Kept || len(d.images) != 1 {
		t.Errorf("%v, %+v, %v", d.named(), o, err)
	}
	d.driver = "btrfs"
	if o, err := s.Keep(t.Context(), c, "boot-3", time.Now()); err != nil || o.Kept || len(d.images) != 0 || !strings.Contains(o.Reason, `driver "btrfs"`) {
		t.Errorf("another driver: %v, %+v, %v", d.named(), o, err)
	}
}

// TestVerifyWithoutTime: what was read in this boot stays, however long what is new takes.
func TestVerifyWithoutTime(t *testing.T) {
	t.Parallel()
	root, diff, digest := aLayer(t)
	check(t, os.Remove(filepath.Join(diff, "etc", opaque)))
	d := &daemon{root: root}
	id := d.config(t, "known")
	d.layers = map[string][]string{id: {digest}}
	e, err := connect(t.Context(), newStore(t, d).Socket)
	check(t, err)
	defer e.close()
	k := keeping{e: e, state: state{Verified: map[string]bool{}}, layers: map[string]bool{}}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.verifyImage(t.Context(), over, disk{root}, image{ID: id}); !errors.Is(err, context.Canceled) {
		t.Errorf("a new layer: %v", err)
	}
	check(t, k.verifyImage(t.Context(), t.Context(), disk{root}, image{ID: id}))
	check(t, k.verifyImage(t.Context(), over, disk{root}, image{ID: id}))
}
