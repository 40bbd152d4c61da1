package imds

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/remuda-ci/remuda/internal/aws"
)

// CallerIdentity is the part of STS that is used. The call needs no permission.
type CallerIdentity interface {
	GetCallerIdentity(context.Context, *sts.GetCallerIdentityInput, ...func(*sts.Options)) (*sts.GetCallerIdentityOutput, error)
}

// HostKey asks STS for the key of this instance's rows: the user id of the credentials of an instance
// profile, <role id>:<instance id>, which is what the policy variable ${aws:userid} expands to.
// *IdentityError, lifecycle.ErrUnavailable, ErrRefused.
func HostKey(ctx context.Context, client CallerIdentity, id Identity) (string, error) {
	out, err := client.GetCallerIdentity(ctx, nil)
	if err != nil {
		return "", aws.Wrap("ask for the host key", err)
	}
	key, wrong := "", &IdentityError{InstanceID: id.InstanceID, LaunchRole: id.Role}
	if out.UserId != nil {
		key, wrong.UserID = *out.UserId, *out.UserId
	}
	role, session, _ := strings.Cut(key, ":")
	if role == "" || session != id.InstanceID || (id.Role != "" && role != id.Role) {
		return "", wrong
	}
	return key, nil
}

// IdentityError means that the credentials are not those with which this instance was launched. Then it
// cannot use its rows: the store's policy admits only the instance itself.
type IdentityError struct {
	InstanceID string
	// LaunchRole is the id of the role that the instance was launched with; empty if that is not known.
	LaunchRole string
	// UserID is the user id of the credentials.
	UserID string
}

func (e *IdentityError) Error() string {
	role, session, _ := strings.Cut(e.UserID, ":")
	if session != e.InstanceID {
		return fmt.Sprintf("the AWS credentials are those of %s and not of the instance profile of %s: "+
			"launch the host with an instance profile, and give agentd no other credentials", e.UserID, e.InstanceID)
	}
	return fmt.Sprintf("%s was launched with the role %s, and its credentials are of the role %s: "+
		"the role was created again, so end this host and launch another", e.InstanceID, e.LaunchRole, role)
}
