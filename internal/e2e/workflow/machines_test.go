package workflow_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/remuda-ci/remuda/internal/githubsim/runner"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// machines are how many of GitHub's own may run jobs at once.
const machines = 2

// toolset is whose curl and jq GitHub's machines have.
type toolset string

const (
	// anyTools are this machine's, and ours where it has none.
	anyTools toolset = "this machine's"
	// ourTools are ours wherever this runs, so that a machine with tools of its
	// own proves them, too.
	ourTools toolset = "ours"
)

// hireMachines starts GitHub's own machines, which trust the test's authority
// as they trust those of the world.
func (s *stage) hireMachines(tools toolset) {
	s.Helper()
	path := os.Getenv("PATH") + ":" + toolsDir
	if tools == ourTools {
		path = toolsDir + ":" + os.Getenv("PATH")
	}
	program := filepath.Join(testrun.System.Dir(s.T), "standin-runner")
	ctx, stop := context.WithCancel(s.ctx)
	var running sync.WaitGroup
	for range machines {
		running.Go(func() {
			hosted := runner.Hosted{
				URL: s.github.URL(), Owner: owner, Runner: program, Output: s.log,
				Env: []string{"PATH=" + path, "SSL_CERT_FILE=" + s.authority.file},
			}
			if err := hosted.Run(ctx); err != nil {
				s.Errorf("a machine of GitHub's: %v", err)
			}
		})
	}
	s.Cleanup(func() { stop(); running.Wait() })
}

// archive writes what grpcurl's makers publish, made of the pinned sources, to a file and
// returns its SHA-256. It is not compressed: under the race detector that takes five
// seconds of processor time, and tar -z unpacks it either way.
func archive(grpcurl, file string) (sum string, err error) {
	program, err := os.ReadFile(grpcurl)
	if err != nil {
		return "", err
	}
	f, err := os.Create(file)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	packed, err := gzip.NewWriterLevel(io.MultiWriter(f, hash), gzip.NoCompression)
	if err != nil {
		return "", errors.Join(err, f.Close())
	}
	files := tar.NewWriter(packed)
	for name, content := range map[string][]byte{"LICENSE": []byte("MIT\n"), "grpcurl": program} {
		err = errors.Join(err, files.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}))
		_, wrong := files.Write(content)
		err = errors.Join(err, wrong)
	}
	err = errors.Join(err, files.Close(), packed.Close(), f.Close())
	return fmt.Sprintf("%x", hash.Sum(nil)), err
}

// published is the archive that all tests share.
var published struct {
	once      sync.Once
	file, sum string
	err       error
}

// publish serves the archive, and returns where, and its SHA-256.
func publish(t *testing.T) (url, sum string) {
	t.Helper()
	grpcurl := filepath.Join(testrun.GRPCurl.Dir(t), "grpcurl")
	published.once.Do(func() {
		published.file = filepath.Join(filepath.Dir(toolsDir), "grpcurl.tar.gz")
		published.sum, published.err = archive(grpcurl, published.file)
	})
	if published.err != nil {
		t.Fatal(published.err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, published.file) // a client that goes away fails its own step
	}))
	t.Cleanup(server.Close)
	return server.URL, published.sum
}
