package awstest

import (
	"fmt"
	"sync"
	"syscall"
)

// The variables that hand over an emulator which runs already: its endpoint, such as
// http://127.0.0.1:40000. make test hands over moto.
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

// Start starts moto for several test binaries, until stop is called or this process ends, and returns the
// variable that hands it over. DynamoDB Local is not shared: it keeps a database with nine threads for each
// account for as long as it runs, and with the 500 accounts of a whole run they took 13 minutes of processor
// time. Both emulators together took 4 when each test binary started its own.
func Start() (environ []string, stop func(), err error) {
	endpoint, stop, err := moto.start()
	if err != nil {
		return nil, nil, fmt.Errorf("start moto: %w", err)
	}
	return []string{motoVariable + "=" + endpoint}, stop, nil
}
