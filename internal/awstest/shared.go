package awstest

import (
	"os"
	"sync"
	"syscall"
)

// The variables that hand over an emulator which runs already: its endpoint, such as
// http://127.0.0.1:40000. make test hands over both.
const (
	dynamodbVariable = "REMUDA_TEST_DYNAMODB"
	motoVariable     = "REMUDA_TEST_MOTO"
)

// sharedBy is the endpoint of an emulator that was handed over, or else of one that this test binary starts.
func sharedBy(variable string, e emulator) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		// Past the os package, so that go test does not note the variable: an
		// endpoint changes from run to run and says nothing about a result.
		endpoint, ok := syscall.Getenv(variable)
		if !ok || endpoint == "" {
			endpoint, _, err := e.start()
			return endpoint, err
		}
		_, err := pinned()
		return endpoint, err
	})
}

// Start starts the emulators for several test binaries, until stop is called or this
// process ends, and returns the variables that hand them over.
func Start() (environ []string, stop func(), err error) {
	keys, err := os.MkdirTemp("", "remuda-test-keys-")
	if err != nil {
		return nil, nil, err
	}
	environ = []string{keysVariable + "=" + keys}
	stops := []func(){func() { _ = os.RemoveAll(keys) }} // a leftover in the temporary directory is harmless
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	for variable, e := range map[string]emulator{dynamodbVariable: dynamodbLocal, motoVariable: moto} {
		endpoint, end, err := e.start()
		if err != nil {
			stop()
			return nil, nil, err
		}
		environ, stops = append(environ, variable+"="+endpoint), append(stops, end)
	}
	return environ, stop, nil
}
