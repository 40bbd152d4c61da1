package awstest

import (
	"fmt"
	"sync"
	"syscall"
)

// The variables by which make test hands over emulators that it has started, for all
// test binaries of a run: their endpoints, such as http://127.0.0.1:40000.
const (
	dynamodbVariable = "REMUDA_TEST_DYNAMODB"
	motoVariable     = "REMUDA_TEST_MOTO"
)

// sharedBy is the endpoint of an emulator that was handed over, or else of one
// that this test binary starts.
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

// Start starts both emulators for several test binaries, until stop is called
// or this process ends, and returns the variables that hand them over.
func Start() (environ []string, stop func(), err error) {
	shared := []struct {
		variable string
		emulator emulator
	}{{dynamodbVariable, dynamodbLocal}, {motoVariable, moto}}
	stops, errs := make([]func(), len(shared)), make([]error, len(shared))
	environ = make([]string, len(shared))
	var starting sync.WaitGroup
	for i, s := range shared {
		starting.Go(func() {
			var endpoint string
			if endpoint, stops[i], errs[i] = s.emulator.start(); errs[i] == nil {
				environ[i] = s.variable + "=" + endpoint
			}
		})
	}
	starting.Wait()
	stop = func() {
		for _, s := range stops {
			if s != nil {
				s()
			}
		}
	}
	for _, err := range errs {
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("start the emulators: %w", err)
		}
	}
	return environ, stop, nil
}
