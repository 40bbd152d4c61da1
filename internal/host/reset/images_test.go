package reset

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/host/dockerstore"
)

// TestRecordImages: the images that a machine came with are known wherever docker keeps them. Those that are not known are deleted after the first run.
func TestRecordImages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config, file string // daemon.json, and what docker has
		known        bool
		fails        string
	}{
		"docker was never started":    {"", "", false, ""},
		"its own directory":           {"", "/var/lib/docker/image/x", true, ""},
		"its own, with other options": {`{"live-restore": false}`, "/var/lib/docker/image/x", true, ""},
		"an empty configuration":      {"\n", "/var/lib/docker/image/x", true, ""},
		"a volume of its own":         {`{"data-root": "/mnt/docker"}`, "/mnt/docker/image/x", true, ""},
		"no JSON":                     {"{", "/var/lib/docker/image/x", false, "daemon.json"},
	} {
		root := t.TempDir()
		p := Plan{Root: root, Images: &dockerstore.Store{Socket: root + "/run/docker.sock", Dir: root}}
		files := map[string]string{"/proc/sys/kernel/random/boot_id": "boot-1\n", "/run/x": "", tt.file: "x", "/etc/docker/daemon.json": tt.config}
		for path, text := range files {
			if path == "" || text == "" && path != "/run/x" {
				continue
			}
			if err := os.MkdirAll(filepath.Dir(p.at(path)), 0o755); err != nil {
				t.Fatal(err)
			}
			put(t, p.at(path), text)
		}
		serveImages(t, p.Images.Socket)
		err := p.recordImages(t.Context())
		if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%s: %v, want one with %q", name, err, tt.fails)
			continue
		}
		recorded, _ := os.ReadFile(filepath.Join(root, "docker-machine.json"))
		if strings.Contains(string(recorded), "sha256:base") != tt.known {
			t.Errorf("%s: recorded %s", name, recorded)
		}
	}
}

// serveImages is a daemon of docker with one image.
func serveImages(t *testing.T, socket string) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		answer := "{}"
		if strings.HasSuffix(r.URL.Path, "/images/json") {
			answer = `[{"Id": "sha256:base", "RepoTags": ["base:1"]}]`
		}
		_, _ = w.Write([]byte(answer))
	}))
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
}
