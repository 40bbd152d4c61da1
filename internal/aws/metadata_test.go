package aws_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
)

// onMachine makes this test a program on an EC2 instance with a profile.
func onMachine(t *testing.T) *imdstest.Service {
	t.Helper()
	s := imdstest.Start(t, imdstest.Machine{
		InstanceID: "i-0123456789abcdef0", Region: "eu-west-1", Role: "remuda-host",
		Credentials: imdstest.Credentials{AccessKeyID: "ASIAEXAMPLE", SecretAccessKey: "secret", Token: "token", Expires: time.Now().Add(time.Hour)},
	})
	for _, variable := range s.Environment() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	return s
}

func TestCredentialsOfTheInstanceProfile(t *testing.T) {
	s := onMachine(t)
	var calls aws.Calls
	c, err := aws.Load(t.Context(), aws.Options{Region: "eu-west-1", Calls: &calls})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Credentials.Retrieve(t.Context())
	if err != nil || got.AccessKeyID != "ASIAEXAMPLE" {
		t.Fatalf("credentials of %s, error %v", got.AccessKeyID, err)
	}
	if n := calls.Counts()[aws.Call{Service: "imds", Operation: "GetMetadata"}]; n != 2 || s.V1Calls() != 0 {
		t.Errorf("%d questions were counted, want 2; %d without a token", n, s.V1Calls())
	}
}

// The first version of the metadata service gives credentials to anything that makes
// a program on the machine fetch an address.
func TestCredentialsAreNotAskedForWithoutAToken(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed} {
		s := onMachine(t)
		s.Fail(imdstest.Fault{Path: "/latest/api/token", Status: status})
		c, err := aws.Load(t.Context(), aws.Options{Region: "eu-west-1"})
		if err != nil {
			t.Fatal(err)
		}
		var none *aws.CredentialsError
		if got, err := c.Credentials.Retrieve(t.Context()); !errors.As(err, &none) {
			t.Errorf("no token, but %d: credentials of %s, error %v", status, got.AccessKeyID, err)
		}
		for _, call := range s.Calls() {
			if call.Method != http.MethodPut {
				t.Errorf("no token, but %d: %s %s", status, call.Method, call.Path)
			}
		}
	}
}

// A proxy gives out its own machine's credentials, or none. It is set for this process alone, which reads the variables once.
func TestMetadataIsNotAskedForThroughAProxy(t *testing.T) {
	if os.Getenv("HTTP_PROXY") != "" {
		c, err := aws.Load(t.Context(), aws.Options{Region: "eu-west-1"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Credentials.Retrieve(t.Context()); err != nil || got.AccessKeyID != "ASIAEXAMPLE" {
			t.Errorf("credentials of %s, error %v", got.AccessKeyID, err)
		}
		return
	}
	s := onMachine(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the proxy was asked for %s %s", r.Method, r.URL)
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer proxy.Close()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	// Go never uses a proxy for 127.0.0.1. By 0.0.0.0 the same service is reached.
	child.Env = append(os.Environ(), "HTTP_PROXY="+proxy.URL, "NO_PROXY=", imdstest.EndpointVariable+"="+strings.Replace(s.URL, "127.0.0.1", "0.0.0.0", 1))
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}
