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
	// sent are the requests of the test; nil for the prober.
	sent *sent
}

// secretKey of everybody: no emulator looks at it.
const secretKey = "secret"

// prober asks whether an emulator is ready.
var prober = caller{account: account(0), accessKey: accessKey(0)}

// The accounts of a test binary are numbered from firstAccount, which is drawn by
// lot: test binaries that run side by side may share their moto.
const (
	accountsOfOne = 10_000
	blocks        = 80_000_000
)

var firstAccount = accountsOfOne * (1 + rand.IntN(blocks))

func account(n int) string { return fmt.Sprintf("%012d", 100_000_000_000+n) }

func (c caller) credentials() sdk.CredentialsProvider { return credentialsOf(c.accessKey) }

func credentialsOf(accessKey string) sdk.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(accessKey, secretKey, "")
}

var callers struct {
	mu    sync.Mutex
	last  int
	tests map[testing.TB]caller
}

// callerOf is the caller of a test. Its account is another one for each test and
// each time that it is run, since moto outlives it; its access key is that of no
// other test that runs at the moment, and has an empty database.
func callerOf(t testing.TB) caller {
	t.Helper()
	callers.mu.Lock()
	defer callers.mu.Unlock()
	if c, ok := callers.tests[t]; ok {
		return c
	}
	key, err := takeAccessKey()
	if err != nil {
		t.Fatal(err)
	}
	if callers.tests == nil {
		callers.tests = map[testing.TB]caller{}
	}
	callers.last++
	c := caller{account: account(firstAccount + callers.last), accessKey: key, sent: newSent(t)}
	callers.tests[t] = c
	t.Cleanup(func() {
		callers.mu.Lock()
		delete(callers.tests, t)
		callers.mu.Unlock()
		c.sent.end(t)
		if err := giveAccessKeyBack(key); err != nil {
			t.Error(err)
		}
	})
	return c
}
