package workflow_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
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
	node, script := node(s.T)
	path = filepath.Dir(node) + ":" + path // GitHub's runner has a Node.js of its own for actions
	program := filepath.Join(testrun.System.Dir(s.T), "standin-runner")
	ctx, stop := context.WithCancel(s.ctx)
	var running sync.WaitGroup
	for range machines {
		running.Go(func() {
			hosted := runner.Hosted{
				URL: s.github.URL(), Owner: owner, Runner: program, Output: s.log,
				Env: []string{
					"PATH=" + path, "SSL_CERT_FILE=" + s.authority.file, "NODE_EXTRA_CA_CERTS=" + s.authority.file,
					runner.ActionVariable + "=" + filepath.Dir(filepath.Dir(script)),
				},
			}
			if err := hosted.Run(ctx); err != nil {
				s.Errorf("a machine of GitHub's: %v", err)
			}
		})
	}
	s.Cleanup(func() { stop(); running.Wait() })
}

// release is what grpcurl's makers publish, except that it has a link to the program that was built from the pinned
// sources. The program itself is 30 MB, which each job that installs it would download, hash and unpack.
func release(grpcurl string) ([]byte, error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	files := tar.NewWriter(packed)
	err := errors.Join(files.WriteHeader(&tar.Header{Name: "LICENSE"}),
		files.WriteHeader(&tar.Header{Name: "grpcurl", Typeflag: tar.TypeSymlink, Linkname: grpcurl}),
		files.Close(), packed.Close())
	return out.Bytes(), err
}

// publish serves that, and returns where, and its SHA-256.
func publish(t *testing.T) (url, sum string) {
	t.Helper()
	text, err := release(filepath.Join(testrun.GRPCurl.Dir(t), "grpcurl"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(text) // a client that goes away fails its own step
	}))
	t.Cleanup(server.Close)
	return server.URL, fmt.Sprintf("%x", sha256.Sum256(text))
}
