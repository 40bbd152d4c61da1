//go:build testhost

package host_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// TestArchivesOfActions: the clean-up after a trusted run fetches what its jobs have used, as root and with a way out, and the jobs of the next run read it.
// The words in the log of a worker are those of actions/runner, which the stand-in does not write.
func TestArchivesOfActions(t *testing.T) {
	t.Parallel()
	const sha = "0123456789abcdef0123456789abcdef01234567"
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	out := tar.NewWriter(zip)
	check(t, out.WriteHeader(&tar.Header{Name: "checkout/action.yml", Mode: 0o644}))
	check(t, out.Close())
	check(t, zip.Close())
	l, err := newWorld(t).listen(worldAddress + ":0")
	check(t, err)
	var asked atomic.Int32
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/archives/actions/checkout/tar.gz/"+sha {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(packed.Bytes())
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })

	s := newStage(t, func(_ types.Instance, m *system) {
		m.hasVolume(t)
		m.configureAgent(t, "archives_url: http://"+l.Addr().String()+"/archives\n")
	})
	const uses = `echo "Check if action archive 'actions/checkout@` + sha + `' already exists in cache directory '$ACTIONS_RUNNER_ACTION_ARCHIVE_CACHE'" >>/var/lib/remuda/runner/_diag/Worker_1.log`
	i := s.provision("700", "caching")
	s.begin("700", job{"use", uses})
	s.succeeds("700", "use")
	if s.release("700").GetPooledCount() != 1 {
		t.Fatalf("the host was withdrawn:\n%s", i.lastJournal())
	}
	s.takesBack(i, "701")
	s.begin("701", job{"look", uses + "\ntar -tzf $ACTIONS_RUNNER_ACTION_ARCHIVE_CACHE/actions_checkout/" + sha + ".tar.gz"})
	if log := s.succeeds("701", "look"); !strings.Contains(log, "checkout/action.yml") {
		t.Errorf("the archive has:\n%s", log)
	}
	if s.release("701").GetPooledCount() != 1 {
		t.Fatalf("the host was withdrawn:\n%s", i.lastJournal())
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the server was asked %d times; the clean-up said:\n%s", n, i.words("remuda-clean"))
	}
}
