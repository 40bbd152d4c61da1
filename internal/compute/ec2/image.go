package ec2

import (
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// image finds the image's root device, whose volume the template describes.
func (e *ensuring) image(t template) (rootDevice string, err error) {
	what := fmt.Sprintf("find image %s of pool %s", t.image, e.pool)
	if err := await(e.ctx, e.c.pace.reads, 1, what); err != nil {
		return "", err
	}
	const remedy = "build a new image, or correct the pool's images"
	// Without IncludeDeprecated EC2 does not show a deprecated image of another account, and launches it anyway.
	out, err := e.c.api.DescribeImages(e.ctx, &service.DescribeImagesInput{ImageIds: []string{t.image}, IncludeDeprecated: sdk.Bool(true)})
	if err != nil {
		switch aws.ClassOf(err) {
		case aws.Gone, aws.Terminal:
			return "", aws.Refused(what, err, remedy)
		}
		return "", aws.Wrap(what, err)
	}
	refuse := func(why, remedy string) error {
		return fmt.Errorf("%s: %w: %s; %s", what, lifecycle.ErrRefused, why, remedy)
	}
	if len(out.Images) == 0 {
		return "", refuse("it is gone", remedy)
	}
	image := out.Images[0]
	if why := unfit(image, t); why != "" {
		return "", refuse(why, remedy)
	}
	if has, least := e.c.o.Pools[e.pool].RootVolumeGiB, rootGiB(image); has > 0 && has < least {
		return "", refuse(fmt.Sprintf("pool %s has root volumes of %d GiB, and that of the image has %d GiB, which EC2 refuses", e.pool, has, least),
			fmt.Sprintf("set root_volume_gib to at least %d, or build the image on a smaller volume", least))
	}
	since, err := time.Parse(time.RFC3339, sdk.ToString(image.DeprecationTime))
	if err == nil && !since.After(e.c.now()) {
		e.c.log.Warn("image is deprecated; build a new one", logkey.Image, t.image, logkey.Pool, e.pool, logkey.Since, since)
	}
	return sdk.ToString(image.RootDeviceName), nil
}

// unfit is why an image cannot be that of a template; empty: it can.
func unfit(image types.Image, t template) string {
	switch {
	case image.State != types.ImageStateAvailable:
		return "it is " + string(image.State)
	case string(image.Architecture) != t.arch:
		return fmt.Sprintf("its architecture is %s and not %s", image.Architecture, t.arch)
	case sdk.ToString(image.RootDeviceName) == "":
		return "it has no root device"
	}
	return ""
}

// rootGiB is the size of the image's root volume; 0: the image does not say it. That is the size of the root snapshot, and EC2 refuses a smaller
// volume with InvalidBlockDeviceMapping, "expect size >= 30GB" (scylladb/scylladb#6999). An image that was registered by hand may name more than
// its snapshot has (bottlerocket-os/bottlerocket#1118). EC2 takes a size between the two, and we do not: to read the snapshot of an image of
// another account is not always allowed.
func rootGiB(image types.Image) int {
	for _, m := range image.BlockDeviceMappings {
		if m.Ebs != nil && sdk.ToString(m.DeviceName) == sdk.ToString(image.RootDeviceName) {
			return int(sdk.ToInt32(m.Ebs.VolumeSize))
		}
	}
	return 0
}
