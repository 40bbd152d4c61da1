package ec2

import (
	"context"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// size is what an instance type has.
type size struct {
	cpu, memoryMiB int
	arch           string
}

func (s size) describe(m *lifecycle.Machine, name string) {
	m.InstanceType, m.CPU, m.MemoryMiB, m.Arch = name, s.cpu, s.memoryMiB, s.arch
}

func knownSizes() map[string]size {
	sizes := map[string]size{}
	for _, t := range catalogue.All() {
		sizes[t.Name] = size{t.CPU, t.MemoryMiB, t.Arch}
	}
	return sizes
}

// typesBatch is EC2's limit of a page with a filter.
const typesBatch = 100

// sizesOf types, from EC2 for those that the catalogue does not know.
func (c *Compute) sizesOf(ctx context.Context, names []string) (map[string]size, error) {
	sizes := map[string]size{}
	var unknown []string
	c.mu.Lock()
	for _, name := range names {
		s, ok := c.sizes[name]
		if ok {
			sizes[name] = s
		} else if !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	c.mu.Unlock()
	for batch := range slices.Chunk(unknown, typesBatch) {
		in := &service.DescribeInstanceTypesInput{Filters: []types.Filter{filter("instance-type", batch...)}}
		out, err := paced(ctx, c.pace.reads, "describe instance types", c.api.DescribeInstanceTypes, in)
		if err != nil {
			return nil, err
		}
		c.learn(out.InstanceTypes, sizes)
	}
	return sizes, nil
}

func (c *Compute) learn(infos []types.InstanceTypeInfo, sizes map[string]size) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, info := range infos {
		s := size{}
		if info.VCpuInfo != nil {
			s.cpu = int(sdk.ToInt32(info.VCpuInfo.DefaultVCpus))
		}
		if info.MemoryInfo != nil {
			s.memoryMiB = int(sdk.ToInt64(info.MemoryInfo.SizeInMiB))
		}
		if info.ProcessorInfo != nil && len(info.ProcessorInfo.SupportedArchitectures) > 0 {
			// Some say i386 first, which no host of ours is.
			archs := info.ProcessorInfo.SupportedArchitectures
			s.arch = string(archs[len(archs)-1])
		}
		c.sizes[string(info.InstanceType)] = s
		sizes[string(info.InstanceType)] = s
	}
}
