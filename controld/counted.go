package main

import "github.com/remuda-ci/remuda/internal/telemetry"

// counter counts the calls of a port, such as "store.claim_instance".
type counter struct {
	metrics *telemetry.Metrics
	port    string
}

// count is deferred, and so reads what the call has come to.
func (c counter) count(operation string, err *error) { c.metrics.Called(c.port+"."+operation, *err) }

// called counts one call with its outcome.
func (c counter) called(operation string, err error) { c.metrics.Called(c.port+"."+operation, err) }
