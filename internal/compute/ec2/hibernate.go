package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// What EC2 hibernates ("Prerequisites for EC2 instance hibernation", "Hibernate your Amazon EC2 instance"; the model of StopInstances and
// HibernationOptions): an instance that was launched for it, on an encrypted root volume of EBS with room for its memory, of a type whose
// HibernationSupported is true, which is never bare metal, and with at most 150 GiB of memory. CreateFleet leaves out all other types by
// RequireHibernateSupport. It hibernates types with an instance store, and what is on that is lost ("Limitations"), while the memory that comes back has
// it mounted: they are left out too.

// bounded is an order of a pool that hibernates with no more memory than its machines can write.
func (c *Compute) bounded(o lifecycle.LaunchOrder) lifecycle.LaunchOrder {
	if most := c.o.Pools[o.Pool].HibernateMiB; most > 0 {
		_, o.MaxMemoryMiB = bounds(o)
		o.MaxMemoryMiB = min(o.MaxMemoryMiB, most)
	}
	return o
}

// cannotHibernate reports whether EC2 refused to hibernate an instance, which it may stop. Whatever the code: some are known, as
// UnsupportedHibernationConfiguration of one that was not launched for it (aws-solutions/instance-scheduler-on-aws#510) and UnsupportedOperation of one that
// is not ready to, for about two minutes after it has started ("Instance is not ready to hibernate yet, retry in a few minutes"), and EC2's reference
// lists none of StopInstances. One whose hibernation fails later is stopped by EC2 (the model of StopInstances).
func cannotHibernate(err error) bool { return errors.Is(err, lifecycle.ErrRefused) }

// errNoneHibernates means that EC2 hibernates no instance of the types that a pool launches.
var errNoneHibernates = errors.New("EC2 hibernates no type that fits the class and the patterns of the pool; allow others in instance_types, or leave out stopped.hibernate")

// hibernating are those of some types that EC2 can hibernate, in the same order. None is an error, unless there were none.
func (c *Compute) hibernating(ctx context.Context, all []catalogue.Type) ([]catalogue.Type, error) {
	can := map[string]bool{}
	for batch := range slices.Chunk(all, typesBatch) {
		var names []string
		for _, t := range batch {
			names = append(names, t.Name)
		}
		in := &service.DescribeInstanceTypesInput{Filters: []types.Filter{filter("instance-type", names...), filter("hibernation-supported", "true")}}
		out, err := paced(ctx, c.pace.reads, "describe instance types that hibernate", c.api.DescribeInstanceTypes, in)
		if err != nil {
			return nil, fmt.Errorf("look for types that hibernate: %w", err)
		}
		for _, info := range out.InstanceTypes {
			can[string(info.InstanceType)] = sdk.ToBool(info.HibernationSupported)
		}
	}
	left := slices.DeleteFunc(slices.Clone(all), func(t catalogue.Type) bool { return !can[t.Name] })
	if len(left) == 0 && len(all) > 0 {
		return nil, errNoneHibernates
	}
	return left, nil
}
