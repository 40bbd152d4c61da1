//go:build testhost

package host_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// update rewrites what the pages show of a host.
var update = flag.Bool("update", false, "rewrite the pages where a host shows something else")

// What scripts/test-host tells.
const (
	rootVariable   = "REMUDA_TEST_HOST_ROOT"   // the unpacked root file system, which nothing writes to
	dirVariable    = "REMUDA_TEST_HOST_DIR"    // for machines; scripts/test-host unmounts and removes what is below
	prefixVariable = "REMUDA_TEST_HOST_PREFIX" // of network namespaces and control groups, which it removes too
	distVariable   = "REMUDA_TEST_HOST_DIST"   // what was built: binaries, packages and the stand-in's runner
)

// setting is one of them.
var setting = struct{ root, dir, prefix, dist string }{
	os.Getenv(rootVariable), os.Getenv(dirVariable), os.Getenv(prefixVariable), os.Getenv(distVariable),
}

func TestMain(m *testing.M) {
	if setting.root == "" || setting.dir == "" || setting.prefix == "" || setting.dist == "" || os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "these tests need root and what scripts/test-host makes: run make test-host")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// command runs a program of this machine and returns what it printed.
func command(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("run %s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := command(name, args...)
	check(t, err)
	return out
}

// lookEvery is how often a test looks again at what it waits for.
const lookEvery = 50 * time.Millisecond

// eventually waits until something holds.
func eventually(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !holds(); time.Sleep(lookEvery) {
		if time.Now().After(end) {
			t.Fatalf("still not after %s: %s", within, what)
		}
	}
}
