package awstest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// A test binary that is killed can clean nothing up: its emulators must not
// stay and fill the machine. The child also finds a port taken: one is free when it is
// chosen and may be taken when the emulator comes.
func TestEmulatorsDieWithAKilledTest(t *testing.T) {
	const child = "REMUDA_AWSTEST_CHILD"
	if os.Getenv(child) != "" {
		dynamo, asked := startOnTakenPort(t)
		fmt.Printf("\nasked %d\nendpoint %s\nendpoint %s\n", asked, dynamo, Moto(t))
		select {} // until killed
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	// Those of make test are not the child's, and stay.
	cmd.Env = append(os.Environ(), child+"=1", SharedVariable+"=")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addresses, said []string
	for lines := bufio.NewScanner(out); len(addresses) < 2 && lines.Scan(); {
		said = append(said, lines.Text())
		if address, ok := strings.CutPrefix(lines.Text(), "endpoint http://"); ok {
			addresses = append(addresses, address)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed
	if len(addresses) != 2 {
		t.Fatalf("the child started %q, want two emulators:\n%s", addresses, strings.Join(said, "\n"))
	}
	if !slices.Contains(said, "asked 2") {
		t.Errorf("after a port that was taken the child says %q, want 2 ports asked for", said)
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

// startOnTakenPort starts a DynamoDB Local whose first port is taken, and returns how many
// ports it asked for.
func startOnTakenPort(t *testing.T) (endpoint string, asked int) {
	t.Helper()
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	e := dynamodbLocal
	e.port = func() (int, error) {
		if asked++; asked == 1 {
			return taken.Addr().(*net.TCPAddr).Port, nil
		}
		return freePort()
	}
	endpoint, _, err = e.start()
	if err != nil {
		t.Fatal(err)
	}
	return endpoint, asked
}
