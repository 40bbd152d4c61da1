package imds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/remuda-ci/remuda/internal/aws"
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
