package awstest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/awstest"
)

// recorder is a test inside a test: it keeps what fails it.
type recorder struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any) {
	r.errors = append(r.errors, fmt.Sprint(args...))
}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) end() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

// accepts is a service that accepts everything, as the emulators nearly do.
func accepts(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<CreateFleetResponse><requestId>r</requestId></CreateFleetResponse>`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// launch sends a CreateFleet.
func launch(t *testing.T, config sdk.Config, change func(*ec2.CreateFleetInput)) {
	t.Helper()
	in := &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: sdk.String("remuda"), Version: sdk.String("1")},
		}},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: sdk.Int32(1)},
	}
	change(in)
	if _, err := ec2.NewFromConfig(config).CreateFleet(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func longToken(in *ec2.CreateFleetInput)   { in.ClientToken = sdk.String(strings.Repeat("t", 65)) }
func unknownType(in *ec2.CreateFleetInput) { in.Type = "once" }
func nothing(*ec2.CreateFleetInput)        {}

// An illegal request fails the test that sends it, unless the test says so, and then it must.
func TestIllegalRequests(t *testing.T) {
	t.Parallel()
	const token = "ec2 CreateFleet: ClientToken has 65 characters, want at most 64"
	for _, test := range []struct {
		name   string
		allow  string
		change func(*ec2.CreateFleetInput)
		want   string
	}{
		{"legal", "", nothing, ""},
		{"an enumeration", "", unknownType, `illegal request to AWS, sent 1 times: ec2 CreateFleet: Type is "once", want one of request, maintain, instant`},
		{"what the model does not say", "", longToken, "illegal request to AWS, sent 1 times: " + token},
		{"on purpose", "CreateFleet: ClientToken", longToken, ""},
		{"on purpose, but other", "CreateFleet: Type", longToken, "illegal request to AWS, sent 1 times: " + token},
		{"on purpose, but legal", "CreateFleet: Type", nothing, `no request was illegal as SendsIllegal says: "CreateFleet: Type"`},
	} {
		for _, way := range []string{"client", "daemon"} {
			t.Run(test.name+", "+way, func(t *testing.T) {
				t.Parallel()
				r := &recorder{TB: t}
				config := awstest.Config(r, accepts(t))
				if way == "daemon" {
					config = daemon(t, awstest.NewProxy(r, accepts(t)))
				}
				if test.allow != "" {
					awstest.SendsIllegal(r, test.allow)
				}
				launch(t, config, test.change)
				r.end()
				if got := strings.Join(r.errors, "\n"); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
					t.Errorf("the test failed with %q, want %q", got, test.want)
				}
			})
		}
	}
}

// daemon is how a program finds a proxy, with a client that does not validate.
func daemon(t *testing.T, p *awstest.Proxy) sdk.Config {
	t.Helper()
	c := awstest.Config(t, p.URL())
	c.HTTPClient = http.DefaultClient
	return c
}
