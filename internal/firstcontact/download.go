package firstcontact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// downloadLimit bounds the download of some 200 MB.
const downloadLimit = 20 * time.Minute

// architectures are GitHub's names for those of Go.
var architectures = map[string]string{"amd64": "x64", "arm64": "arm64"}

// download gets the runner that GitHub offers to this repository, checks its sum, and unpacks it.
func (s *session) download(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, downloadLimit)
	defer cancel()
	var offered []struct {
		OS, Architecture string
		URL              string `json:"download_url"`
		Sum              string `json:"sha256_checksum"`
	}
	err := s.gh.call(ctx, "GET", "/actions/runners/downloads", nil, &offered)
	if statusOf(err) == http.StatusNotFound {
		return "", fmt.Errorf("%s offers none", s.APIURL) // such as the stand-in
	}
	if err != nil {
		return "", err
	}
	for _, o := range offered {
		if o.OS == "linux" && o.Architecture == architectures[runtime.GOARCH] {
			if o.Sum == "" {
				return "", fmt.Errorf("%s comes without a checksum", o.URL)
			}
			return s.unpack(ctx, o.URL, o.Sum)
		}
	}
	return "", fmt.Errorf("GitHub offers no runner for linux and %s", runtime.GOARCH)
}

// unpack gets an archive with a known SHA-256.
func (s *session) unpack(ctx context.Context, url, want string) (string, error) {
	archive, dir := s.path("runner.tar.gz"), s.path("runner")
	if err := s.fetch(ctx, url, archive, want); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	s.Say("unpacking")
	if out, err := exec.CommandContext(ctx, "tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpack %s: %w: %s", url, err, lastLines(string(out)))
	}
	if err := os.Remove(archive); err != nil {
		return "", err
	}
	return dir, checkRunner(&dir)
}

// fetch writes what is at an address to a file. The token goes to GitHub's API alone, so this call is without it.
func (s *session) fetch(ctx context.Context, url, path, want string) (err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := s.gh.client.Do(r)
	if err != nil {
		return unreached(ctx, url, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, sum), resp.Body); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return fmt.Errorf("%s has the SHA-256 %s, and GitHub says %s", url, got, want)
	}
	return nil
}
