package firstcontact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/firstcontact"
)

// archiveOf is a runner as GitHub offers it.
func archiveOf(t *testing.T, dir string) []byte {
	t.Helper()
	var text bytes.Buffer
	zip, err := gzip.NewWriterLevel(&text, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(zip)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func TestDownload(t *testing.T) {
	architecture := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	for name, c := range map[string]struct{ sum, want string }{
		"with the right sum": {"%x", ""},
		"with another sum":   {"0%x", "has the SHA-256"},
		"without a sum":      {"", "comes without a checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			archive := []byte("not looked at")
			if c.want == "" {
				archive = archiveOf(t, w.current)
			}
			sum := ""
			if c.sum != "" {
				sum = fmt.Sprintf(c.sum, sha256.Sum256(archive))
			}
			o := w.options("defaults")
			o.Runner = ""
			o.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/actions/runners/downloads"):
					return answer(r, 200, fmt.Sprintf(`[{"os": "osx", "architecture": %[1]q, "download_url": "https://download.example/o", "filename": "o"},
						{"os": "linux", "architecture": %[1]q, "download_url": "https://download.example/l", "filename": "l", "sha256_checksum": %[2]q}]`, architecture, sum)), nil
				case r.URL.Path == "/l":
					if r.Header.Get("Authorization") != "" {
						t.Error("the token goes to where the runner is from")
					}
					return answer(r, 200, string(archive)), nil
				}
				return w.transport.RoundTrip(r)
			})
			report, err := firstcontact.Run(t.Context(), o)
			if c.want == "" {
				w.check(err)
				if len(report.Findings) != 3 || len(findings.RefutedOf(report.Findings)) > 0 {
					t.Errorf("%+v", report)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			w.clean(o)
			if _, err := os.Stat(filepath.Join(o.WorkDir, "runner.tar.gz")); err == nil {
				t.Error("the archive is left")
			}
		})
	}
}
