package ec2

import (
	"context"
	"fmt"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/compute/catalogue"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	// soldFor is how long an answer about what EC2 sells is used. New types come a few times a year; longer, and a type
	// of today is refused for as long.
	soldFor = time.Hour
	// sellsTimeout bounds the question. A caller waits for it, and without an answer the launch tells.
	sellsTimeout = 5 * time.Second
	// soldPages bounds how many pages of 100 types are read. EC2 has about 1,000 types.
	soldPages = 10
	// maxSold is how many answers are kept. Callers choose the patterns.
	maxSold = 1000
)

// sold is whether EC2 sells a type for some patterns, as of a time.
type sold struct {
	yes bool
	at  time.Time
}

// Class is what a host has at least and at most; a maximum of 0 is what suits the least.
type Class struct{ CPU, MemoryMiB, MaxCPU, MaxMemoryMiB int }

// Sells reports whether EC2 has an instance type in the region, free or not, that is large enough for a class and matches each of the lists of
// patterns (an empty list: all). EC2 is asked with DescribeInstanceTypes if the catalogue has none: CreateFleet answers a launch of types that
// do not exist as it answers a shortage, with UnfulfillableCapacity or as in nopools.go. What cannot be known now counts as sold.
func (c *Compute) Sells(class Class, patterns ...[]string) bool {
	o := lifecycle.LaunchOrder{CPU: class.CPU, MemoryMiB: class.MemoryMiB, MaxCPU: class.MaxCPU, MaxMemoryMiB: class.MaxMemoryMiB}
	patterns = slices.DeleteFunc(slices.Clone(patterns), func(list []string) bool { return len(list) == 0 })
	fits := func(t catalogue.Type) bool {
		all := func(list []string) bool { return !matchesAny(list, t.Name) }
		return sized(t, o) && !slices.ContainsFunc(patterns, all)
	}
	if len(patterns) == 0 || slices.ContainsFunc(catalogue.All(), fits) {
		return true
	}
	key := fmt.Sprint(class, patterns)
	c.mu.Lock()
	known, ok := c.sold[key]
	c.mu.Unlock()
	if ok && c.now().Sub(known.at) < soldFor {
		return known.yes
	}
	yes, err := c.asksForTypes(patterns[0], fits)
	if err != nil {
		c.log.Warn("instance types not found out; the launch tells", logkey.Error, err)
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sold) >= maxSold {
		clear(c.sold)
	}
	c.sold[key] = sold{yes, c.now()}
	return yes
}

// asksForTypes reports whether EC2 has a type with a name like one of the patterns that fits.
func (c *Compute) asksForTypes(patterns []string, fits func(catalogue.Type) bool) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sellsTimeout)
	defer cancel()
	in := &service.DescribeInstanceTypesInput{
		Filters: []types.Filter{filter("instance-type", patterns...)}, MaxResults: sdk.Int32(typesBatch),
	}
	for range soldPages {
		out, err := paced(ctx, c.pace.reads, "describe instance types", c.api.DescribeInstanceTypes, in)
		if err != nil {
			return false, err
		}
		sizes := map[string]size{}
		c.learn(out.InstanceTypes, sizes)
		for name, s := range sizes {
			if fits(catalogue.Type{Name: name, CPU: s.cpu, MemoryMiB: s.memoryMiB, Arch: s.arch}) {
				return true, nil
			}
		}
		if sdk.ToString(out.NextToken) == "" {
			return false, nil
		}
		in.NextToken = out.NextToken
	}
	return true, nil // there are more than EC2 is known to have
}
