// Package imds reads what an EC2 instance says about itself to the programs on it: its
// identity, the key of its rows in the store, and whether EC2 is about to reclaim it. It
// asks the instance metadata service, version 2 only.
package imds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// LifecycleSpot is the lifecycle of an instance that EC2 may reclaim at any time.
const LifecycleSpot = "spot"

// The tags that an instance reads about itself. Their keys are used unescaped in a path: with tags in
// metadata, EC2 allows only letters, digits and + - = . , _ : @ in keys ("View tags for your EC2 instances
// using instance metadata").
const (
	tagPool = "remuda:pool"
	tagRole = "remuda:role"
)

// Identity is which instance this is.
type Identity struct {
	InstanceID, Region, Zone, Type string
	// Arch is x86_64 or arm64.
	Arch string
	// Lifecycle is spot, on-demand or another value of EC2.
	Lifecycle string
	// Pool and Role are from the instance's tags: its pool, and the id of the role that it was launched with.
	// Empty where it has no such tag, or where tags are not in its metadata.
	Pool, Role string
}

// Identify asks which instance this is. Errors: lifecycle.ErrUnavailable.
func Identify(ctx context.Context, client *sdk.Client) (Identity, error) {
	const what = "ask the instance metadata who this is"
	document, err := client.GetInstanceIdentityDocument(ctx, nil)
	if err != nil {
		return Identity{}, aws.Wrap(what, err)
	}
	id := Identity{
		InstanceID: document.InstanceID, Region: document.Region, Zone: document.AvailabilityZone,
		Type: document.InstanceType, Arch: document.Architecture,
	}
	if id.InstanceID == "" || id.Region == "" {
		return Identity{}, aws.Wrap(what, errors.New("the identity document names no instance or no region"))
	}
	for path, into := range map[string]*string{
		"instance-life-cycle": &id.Lifecycle, "tags/instance/" + tagPool: &id.Pool, "tags/instance/" + tagRole: &id.Role,
	} {
		if *into, err = read(ctx, client, path); err != nil {
			return Identity{}, aws.Wrap(what, err)
		}
	}
	return id, nil
}

// longestText is longer than any answer that is read here, in bytes.
const longestText = 4096

// read returns what the service has at a path; "" if there is no such path.
func read(ctx context.Context, client *sdk.Client, path string) (string, error) {
	out, err := client.GetMetadata(ctx, &sdk.GetMetadataInput{Path: path})
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode() == http.StatusNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer out.Content.Close()
	text, err := io.ReadAll(io.LimitReader(out.Content, longestText))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return strings.TrimSpace(string(text)), nil
}

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

// NoticeInterval is between polls for a notice. An interruption notice comes at best two minutes before the
// end, and every 5 s is what the EC2 User Guide recommends for both ("Spot Instance interruption notices",
// "EC2 instance rebalance recommendations"). A poll costs nothing.
const NoticeInterval = 5 * time.Second

// Interruption returns when EC2 will reclaim this instance, by its notice; zero without one. What EC2 will do is
// terminate, stop or hibernate: the host is lost to its run in any case.
func Interruption(ctx context.Context, client *sdk.Client) (time.Time, error) {
	var action struct {
		Time time.Time `json:"time"`
	}
	err := notice(ctx, client, "look for an interruption notice", "spot/instance-action", &action)
	return action.Time, err
}

// Rebalance returns when EC2 recommended to leave this instance; zero if it never did. It is not an interruption:
// it only says that the risk has grown, and most such instances continue to work for hours.
func Rebalance(ctx context.Context, client *sdk.Client) (time.Time, error) {
	var recommendation struct {
		NoticeTime time.Time `json:"noticeTime"`
	}
	err := notice(ctx, client, "look for a rebalance recommendation", "events/recommendations/rebalance", &recommendation)
	return recommendation.NoticeTime, err
}

// notice reads the notice at a path. It does not touch its target if there is none.
func notice(ctx context.Context, client *sdk.Client, what, path string, into any) error {
	text, err := read(ctx, client, path)
	switch {
	case err != nil:
		return aws.Wrap(what, err)
	case text == "":
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Watch polls for an interruption notice at every interval, first at once, and calls tell with the time at
// which EC2 will reclaim this instance whenever that is new. It returns when ctx is done. A service that does
// not answer is asked again, and its silence is not a notice.
func Watch(ctx context.Context, client *sdk.Client, interval time.Duration, log hclog.Logger, tell func(at time.Time)) {
	watch(ctx, client, interval, log, Interruption, func(at time.Time) {
		log.Warn("EC2 will take this machine", logkey.At, at)
		tell(at)
	})
}

// WatchRebalance is Watch for a rebalance recommendation, with the time at which that was made.
func WatchRebalance(ctx context.Context, client *sdk.Client, interval time.Duration, log hclog.Logger, tell func(at time.Time)) {
	watch(ctx, client, interval, log, Rebalance, func(at time.Time) {
		log.Warn("EC2 recommends to leave this machine", logkey.At, at)
		tell(at)
	})
}

// watch polls for one kind of notice.
func watch(
	ctx context.Context, client *sdk.Client, interval time.Duration, log hclog.Logger,
	read func(context.Context, *sdk.Client) (time.Time, error), changed func(at time.Time),
) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last time.Time
	silent := false
	for ctx.Err() == nil {
		at, err := read(ctx, client)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !silent:
			log.Warn("instance metadata does not answer", logkey.Error, err)
		case !at.IsZero() && !at.Equal(last):
			last = at
			changed(at)
		}
		silent = err != nil
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
