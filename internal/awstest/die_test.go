package awstest_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/awstest"
)

// A test binary that is killed can clean nothing up: its emulators must not
// stay and fill the machine.
func TestEmulatorsDieWithAKilledTest(t *testing.T) {
	const child = "REMUDA_AWSTEST_CHILD"
	if os.Getenv(child) != "" {
		os.Stdout.WriteString("\nendpoint " + awstest.DynamoDB(t) + "\nendpoint " + awstest.Moto(t) + "\n")
		select {} // until killed
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	// Those of make test are not the child's, and stay.
	cmd.Env = append(os.Environ(), child+"=1", awstest.SharedVariable+"=")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for lines := bufio.NewScanner(out); len(addresses) < 2 && lines.Scan(); {
		if address, ok := strings.CutPrefix(lines.Text(), "endpoint http://"); ok {
			addresses = append(addresses, address)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed
	if len(addresses) != 2 {
		t.Fatalf("the child started %q, want two emulators", addresses)
	}
	for _, address := range addresses {
		for deadline := time.Now().Add(5 * time.Minute); ; {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				break
			}
			conn.Close()
			if time.Now().After(deadline) {
				t.Fatalf("%s still answers", address)
			}
		}
	}
}
