// Package testrun is what tests share with the command that runs all of them
// (make test, cmd/testrun): which rooms need no race detector, and the programs
// that the command has built for all tests.
//
// The command runs two passes at the same time. The race pass has every package
// whose code may start goroutines. The plain pass, without the race detector, has
// the rooms of Sequential, the packages of SequentialTests and SystemTests, and
// completely every package that leaves something out of the race pass (see package
// racepass).
package testrun

import "os"

// Sequential are the rooms whose code starts no goroutine and shares nothing
// between goroutines, so that the race detector can find nothing in it.
// TestSequentialRooms, beside the arrows test, proves that.
var Sequential = []string{
	"internal/agent",
	"internal/github/webhook",
	"internal/lifecycle",
	"internal/policy",
	"internal/sim",
}

// SequentialTests are single packages. That is true of their code and of their tests.
var SequentialTests = []string{
	"action",
	"internal",
	"internal/compute/catalogue",
	"internal/compute/placement",
	"internal/config",
	"internal/config/strictyaml",
	"internal/githubsim/expr",
	"internal/githubsim/journal",
	"internal/githubsim/workflow",
	"internal/host/notify",
	"internal/host/reset/fingerprint",
	"internal/host/script",
	"internal/proc",
	"internal/queue/hint",
	"internal/services/model",
	"internal/site",
	"internal/store",
	"internal/store/token",
	"packer",
	"proto/remuda/v1",
	"systemd",
}

// SystemTests are packages whose tests start the programs as processes. Those are
// built without the race detector, and in the process of the tests there is nothing
// of the product: TestSystemTests proves that. What the programs do on their goroutines
// is under the race detector in the tests of agentd, controld and the rooms.
var SystemTests = []string{
	"internal/e2e",
	"internal/e2e/aws",
	"internal/e2e/cli",
	"internal/e2e/jobs",
	"internal/e2e/release",
	"internal/e2e/workflow",
}

// Everything that is built without the race detector is built in one way, that of
// make build, so that each package is compiled at most twice in a run.
var (
	BuildFlags   = []string{"-trimpath"}
	BuildEnviron = []string{"CGO_ENABLED=0"}
)

// The variables that the command sets for tests.
const (
	// BinVariable is the directory below which the Programs are.
	BinVariable = "REMUDA_TEST_BIN"
	// RunVariable differs from run to run.
	RunVariable = "REMUDA_TEST_RUN"
)

// Fresh keeps the result of the test binary that calls it from being reused by
// another run of the command: it depends on something that go test does not see.
func Fresh() {
	os.Getenv(RunVariable) // go test notes the variables that a test asked for
}
