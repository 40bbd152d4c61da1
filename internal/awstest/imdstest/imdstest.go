// Package imdstest is the instance metadata service of one machine, for tests.
// It speaks version 2 only: a call without a token is refused and counted. The SDK reaches it through AWS_EC2_METADATA_SERVICE_ENDPOINT.
//
// Paths and answers are those of "Instance metadata categories" in the EC2 User
// Guide, as far as the product asks for them; every other path is not found.
package imdstest

import (
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// EndpointVariable is where the SDK reads the address of the service.
const EndpointVariable = "AWS_EC2_METADATA_SERVICE_ENDPOINT"

// Machine is what the service tells. What is empty is not found.
type Machine struct {
	InstanceID, Region, Zone, Type string
	// Arch is x86_64 or arm64.
	Arch string
	// Lifecycle is on-demand or spot.
	Lifecycle string
	// Tags in metadata; nil: they are not enabled, and the whole branch is not found.
	Tags map[string]string
	// Role is the name of the instance profile's role; empty: there is no profile.
	Role        string
	Credentials Credentials
	// InterruptionAt is when EC2 will take the machine; zero: no notice.
	InterruptionAt time.Time
	// RebalanceAt is when EC2 recommended to leave the machine; zero: it did not.
	RebalanceAt time.Time
	UserData    string
}

// Credentials of the instance profile.
type Credentials struct {
	AccessKeyID, SecretAccessKey, Token string
	Expires                             time.Time
}

// Call is a request that the service got.
type Call struct {
	Method, Path string
	// Status is what it answered.
	Status int
}

// Service is one machine's. It is safe for concurrent use.
type Service struct {
	// URL is its address, such as http://127.0.0.1:40000.
	URL string

	mu      sync.Mutex
	machine Machine
	faults  []Fault
	tokens  map[string]time.Time // and when each expires
	calls   []Call
	v1      int
}

// Start starts the service of a machine. It ends with the test.
func Start(t testing.TB, m Machine) *Service {
	t.Helper()
	s := &Service{machine: m, tokens: map[string]time.Time{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Environment is what a process needs that is to run on the machine: the
// address of its metadata, and no credentials but those that are there.
func (s *Service) Environment() []string {
	return []string{
		EndpointVariable + "=" + s.URL, "AWS_EC2_METADATA_DISABLED=false",
		"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN=", "AWS_PROFILE=",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
		"AWS_WEB_IDENTITY_TOKEN_FILE=", "AWS_CONTAINER_CREDENTIALS_FULL_URI=", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=",
	}
}

// Change changes what the service tells from now on.
func (s *Service) Change(f func(m *Machine)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.machine)
}

// Revoke makes every token that was given invalid, as when a machine was stopped and started.
func (s *Service) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Calls are the requests so far.
func (s *Service) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// V1Calls is how many requests for data came without any token.
func (s *Service) V1Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.v1
}
