package awstest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// caller is who a test is to the emulators. Each has a world of its own.
type caller struct {
	account   string
	accessKey string
}

// secretKey of everybody: no emulator looks at it.
const secretKey = "secret"

// prober asks whether an emulator is ready.
var prober = newCaller(0)

// The callers of a test binary are numbered from firstCaller, which is drawn by
// lot: test binaries that run side by side may share their emulators.
const (
	callersOfOne = 10_000
	blocks       = 80_000_000
)

var firstCaller = callersOfOne * (1 + rand.IntN(blocks))

func newCaller(n int) caller {
	return caller{
		account: fmt.Sprintf("%012d", 100_000_000_000+n),
		// DynamoDB Local takes letters and digits, AWS's own keys have 20.
		accessKey: fmt.Sprintf("AKIATEST%012d", n),
	}
}

func (c caller) credentials() sdk.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(c.accessKey, secretKey, "")
}

var callers struct {
	mu    sync.Mutex
	last  int
	tests map[testing.TB]caller
}

// callerOf is the caller of a test: another one for each test and each time
// that it is run, since the emulators outlive it.
func callerOf(t testing.TB) caller {
	callers.mu.Lock()
	defer callers.mu.Unlock()
	if c, ok := callers.tests[t]; ok {
		return c
	}
	if callers.tests == nil {
		callers.tests = map[testing.TB]caller{}
	}
	callers.last++
	c := newCaller(firstCaller + callers.last)
	callers.tests[t] = c
	t.Cleanup(func() {
		callers.mu.Lock()
		defer callers.mu.Unlock()
		delete(callers.tests, t)
	})
	return c
}
