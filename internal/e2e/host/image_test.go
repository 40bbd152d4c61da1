//go:build testhost

package host_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/remuda-ci/remuda/internal/githubsim/runner"
)

// provisionWithin bounds the image scripts, which take some seconds where all
// packages are there.
const provisionWithin = 3 * time.Minute

// image is what machines boot from, in layers: what the image scripts made of
// the root file system, and that. It is made when a test first asks for it.
func image(t testing.TB) []string {
	t.Helper()
	made, err := theImage()
	check(t, err)
	return []string{made.layer, setting.root}
}

// provisioned is an image and what its scripts printed.
type provisioned struct{ layer, output string }

var theImage = sync.OnceValues(func() (provisioned, error) {
	w, err := theWorld()
	if err != nil {
		return provisioned{}, err
	}
	return provisionLayer(w, "image", nil, setting.root)
})

// provisionLayer runs the image scripts over layers, and makes what they change another one.
func provisionLayer(w *world, name string, environment []string, layers ...string) (provisioned, error) {
	s, err := mountSystem(filepath.Join(setting.dir, name), layers...)
	if err != nil {
		return provisioned{}, err
	}
	out, err := provision(w, s, "provision.sh", environment...)
	return provisioned{s.layer, out}, errors.Join(err, unix.Unmount(s.root, 0))
}

// provision runs one of packer/scripts as Packer does, except that the runner comes
// from a stand-in of GitHub's downloads.
func provision(w *world, s *system, script string, environment ...string) (string, error) {
	const at = "var/tmp/remuda-image"
	name := filepath.Base(filepath.Dir(s.root))
	downloads, err := theDownloads()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(s.root, at), 0o755); err != nil {
		return "", err
	}
	for from, to := range map[string]string{
		"../../../packer/scripts": at, filepath.Join(setting.dist, "1.0.0", "remuda-agentd.deb"): at,
	} {
		if _, err := command("cp", "-r", from, filepath.Join(s.root, to)); err != nil {
			return "", err
		}
	}
	g, err := makeGroups(setting.prefix + name)
	if err != nil {
		return "", err
	}
	args := []string{
		"timeout", fmt.Sprint(provisionWithin.Seconds()), "systemd-nspawn", "--register=no", "--keep-unit", "--quiet", "--pipe", "--as-pid2",
		"--directory=" + s.root, "--machine=" + setting.prefix + name, "--network-namespace-path=/run/netns/" + w.name,
		"--setenv=REMUDA_AGENTD_PACKAGE=/" + at + "/remuda-agentd.deb", "--setenv=REMUDA_AGENTD_VERSION=1.0.0",
		"--setenv=REMUDA_RUNNER_VERSION=" + runner.Version, "--setenv=REMUDA_RUNNER_SHA256=" + downloads.runnerSum, "--setenv=REMUDA_RUNNER_URL=" + downloads.url,
	}
	for _, variable := range environment {
		args = append(args, "--setenv="+variable)
	}
	cmd := nspawn(g, append(args, "bash", "-euc", "bash /"+at+"/scripts/"+script+"; rm -rf /"+at)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("run the image scripts: %w\n%s", err, out)
	}
	return string(out), errors.Join(err, g.remove())
}

// downloads are what the image scripts fetch, as long as this process lives.
type downloads struct{ dir, url, runnerSum string }

// theDownloads have the stand-in's runner, as an archive of a release of actions/runner.
var theDownloads = sync.OnceValues(func() (downloads, error) {
	d := downloads{dir: filepath.Join(setting.dir, "download")}
	w, err := theWorld()
	if err != nil {
		return d, err
	}
	tree := filepath.Join(setting.dir, "runner")
	if err := runner.LayOut(tree, filepath.Join(setting.dist, "standin-runner")); err != nil {
		return d, err
	}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		return d, err
	}
	archive := filepath.Join(d.dir, "actions-runner-linux-x64-"+runner.Version+".tar.gz")
	if _, err := command("tar", "-C", tree, "-czf", archive, "--hard-dereference", "."); err != nil {
		return d, err
	}
	data, err := os.ReadFile(archive)
	if err != nil {
		return d, err
	}
	l, err := w.listen(worldAddress + ":0")
	if err != nil {
		return d, err
	}
	go func() { _ = http.Serve(l, http.FileServer(http.Dir(d.dir))) }()
	digest := sha256.Sum256(data)
	d.url, d.runnerSum = "http://"+l.Addr().String(), hex.EncodeToString(digest[:])
	return d, nil
})

// TestImage: what the scripts of packer/ made, and what a machine is that boots
// from it.
func TestImage(t *testing.T) {
	image(t)
	made, _ := theImage()
	lines := strings.Split(strings.TrimSpace(made.output), "\n")
	t.Log(strings.Join(lines[max(0, len(lines)-2):], "\n"))
	w := newWorld(t)
	a := newAccount(t, w)
	m := startMachines(t, a, w, nil).of(t, a.launch())
	m.copyFile(t, "../../../packer/scripts/check.sh", "opt/check.sh", 0o755)
	t.Log(m.sh("REMUDA_RUNNER_VERSION=" + runner.Version + " REMUDA_AGENTD_VERSION=1.0.0 /opt/check.sh --booted"))
	if failed := m.units("--state=failed"); len(failed) != 0 {
		t.Errorf("units that failed: %v", failed)
	}
	for user, reaches := range map[string]bool{"root": true, "runner": false} {
		for _, address := range []string{metadataIPv4, "[" + metadataIPv6 + "]"} {
			_, err := m.try("runuser", "-u", user, "--", "curl", "-s", "-o", "/dev/null", "-m", "2", "http://"+address+"/")
			if (err == nil) != reaches {
				t.Errorf("%s reaches %s: %v, want %v", user, address, err == nil, reaches)
			}
		}
	}
	m.press()
	m.goesDown(powerOffWithin)
}
