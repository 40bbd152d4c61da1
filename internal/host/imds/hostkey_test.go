package imds_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/host/imds"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

const instanceID = "i-0123456789abcdef0"

// role makes the role of the hosts and gives its ARN and id.
func role(t *testing.T, c sdk.Config) (arn, id string) {
	t.Helper()
	out, err := iam.NewFromConfig(c).CreateRole(t.Context(), &iam.CreateRoleInput{
		RoleName: sdk.String("remuda-host"), AssumeRolePolicyDocument: sdk.String("{}"),
	})
	check(t, err)
	return *out.Role.Arn, *out.Role.RoleId
}

// assumed is a client of STS with the credentials that EC2 gives an instance
// with a profile: those of its role, with its id as the session's name.
func assumed(t *testing.T, c sdk.Config, roleARN, session string) *sts.Client {
	t.Helper()
	out, err := sts.NewFromConfig(c).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: &roleARN, RoleSessionName: &session})
	check(t, err)
	k := out.Credentials
	c.Credentials = credentials.NewStaticCredentialsProvider(*k.AccessKeyId, *k.SecretAccessKey, *k.SessionToken)
	return sts.NewFromConfig(c)
}

func TestHostKeyIsRoleAndInstance(t *testing.T) {
	c := awstest.Config(t, awstest.Moto(t))
	arn, roleID := role(t, c)
	client := assumed(t, c, arn, instanceID)
	for _, launchRole := range []string{"", roleID} {
		key, err := imds.HostKey(t.Context(), client, imds.Identity{InstanceID: instanceID, Role: launchRole})
		if err != nil || key != roleID+":"+instanceID {
			t.Errorf("launched with role %q: key %q, error %v, want %s:%s", launchRole, key, err, roleID, instanceID)
		}
	}
}

func TestCredentialsOfSomebodyElse(t *testing.T) {
	c := awstest.Config(t, awstest.Moto(t))
	arn, _ := role(t, c)
	mine, others := assumed(t, c, arn, instanceID), assumed(t, c, arn, "i-0fedcba9876543210")
	tests := map[string]struct {
		client imds.CallerIdentity
		role   string
		want   []string
	}{
		"of another instance": {others, "", []string{"i-0fedcba9876543210", "not of the instance profile of " + instanceID}},
		"of no role":          {sts.NewFromConfig(c), "", []string{"not of the instance profile of " + instanceID}},
		"of another role":     {mine, "AROAOLDEXAMPLE", []string{"AROAOLDEXAMPLE", "created again"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			key, err := imds.HostKey(t.Context(), tt.client, imds.Identity{InstanceID: instanceID, Role: tt.role})
			var wrong *imds.IdentityError
			if !errors.As(err, &wrong) {
				t.Fatalf("key %q, error %v, want an IdentityError", key, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

func TestSTSDoesNotTell(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   error
	}{
		"refuses": {http.StatusForbidden,
			`<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredToken</Code><Message>The security token is expired</Message></Error></ErrorResponse>`,
			lifecycle.ErrRefused},
		"is down": {http.StatusServiceUnavailable, "", lifecycle.ErrUnavailable},
		"names no host": {http.StatusOK,
			`<GetCallerIdentityResponse><GetCallerIdentityResult></GetCallerIdentityResult></GetCallerIdentityResponse>`, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/xml")
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			t.Cleanup(server.Close)
			key, err := imds.HostKey(t.Context(), sts.NewFromConfig(awstest.Config(t, server.URL)), imds.Identity{InstanceID: instanceID})
			var wrong *imds.IdentityError
			switch {
			case err == nil:
				t.Errorf("key %q and no error", key)
			case tt.want == nil && !errors.As(err, &wrong):
				t.Errorf("error %v, want an IdentityError", err)
			case tt.want != nil && !errors.Is(err, tt.want):
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}
