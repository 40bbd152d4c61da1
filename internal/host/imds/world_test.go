package imds_test

import (
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
)

// machine is one of a fleet.
func machine() imdstest.Machine {
	return imdstest.Machine{
		InstanceID: "i-0123456789abcdef0", Region: "eu-west-1", Zone: "eu-west-1b", Type: "c6i.large", Arch: "x86_64",
		Lifecycle: "spot", Role: "remuda-host",
		Tags:        map[string]string{"remuda:pool": "build", "remuda:role": "AROAEXAMPLE", "team": "ci"},
		Credentials: imdstest.Credentials{AccessKeyID: "ASIAEXAMPLE", SecretAccessKey: "secret", Token: "token", Expires: time.Now().Add(time.Hour)},
	}
}

// client reaches the service as a program on the machine does.
func client(t *testing.T, s *imdstest.Service, calls *aws.Calls) *sdk.Client {
	t.Helper()
	t.Setenv(imdstest.EndpointVariable, s.URL)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	c, err := aws.Metadata(calls)
	check(t, err)
	return c
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
