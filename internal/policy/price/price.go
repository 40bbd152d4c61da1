// Package price says what an hour of a machine costs.
package price

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// Price is what an hour costs of the machines that it matches.
type Price struct {
	// InstanceType is a type, or a pattern such as m7g.*.
	InstanceType string `yaml:"instance_type"`
	// UsageClass is spot or on-demand, and Region that of AWS; empty: any.
	UsageClass lifecycle.UsageClass `yaml:"usage_class"`
	Region     string               `yaml:"region"`
	// Dollars an hour.
	Dollars float64 `yaml:"dollars_per_hour"`
}

func (p Price) matches(instanceType, usageClass, region string) bool {
	ok, err := path.Match(p.InstanceType, instanceType)
	return err == nil && ok && (p.UsageClass == "" || string(p.UsageClass) == usageClass) && (p.Region == "" || p.Region == region)
}

// List is the prices of a fleet.
type List struct {
	// Own are those of the configuration. The first that matches counts, before the built-in ones.
	Own []Price
	// SpotShare is what spot costs, as a share of the built-in on-demand price.
	SpotShare float64
	Region    string
	// Calls are what the calls to AWS cost. The first that matches counts, before the built-in ones.
	Calls []CallPrice
}

// DefaultSpotPercent is about what spot capacity costs of on-demand: AWS speaks of up to 90 % off, and of other prices by the hour,
// type and zone (docs.aws.amazon.com, "Spot Instances").
const DefaultSpotPercent = 40

// Of is what an hour costs; false: there is no price. rough says that it is the share of another price, or that of another region.
func (l List) Of(instanceType, usageClass string) (dollars float64, rough, ok bool) {
	if i := slices.IndexFunc(l.Own, func(p Price) bool { return p.matches(instanceType, usageClass, l.Region) }); i >= 0 {
		return l.Own[i].Dollars, false, true
	}
	dollars, ok = onDemand(instanceType)
	if rough = l.Region != BuiltInRegion; usageClass == string(lifecycle.UsageSpot) {
		dollars, rough = dollars*l.SpotShare, true
	}
	return dollars, rough, ok
}

// BuiltInRegion is where the built-in prices are from.
const BuiltInRegion = "us-east-1"

// large is what an hour of the size large costs on-demand with Linux in us-east-1, by family. Within these families the price
// is in proportion to the virtual CPUs. Source: aws.amazon.com/ec2/pricing/on-demand. They are there for a first look:
// the configuration has those that are paid.
var large = map[string]float64{
	"m5": 0.096, "m5a": 0.086, "m6i": 0.096, "m6a": 0.0864, "m6g": 0.077, "m7i": 0.1008, "m7a": 0.11592, "m7g": 0.0816, "m8g": 0.08976,
	"c5": 0.085, "c5a": 0.077, "c6i": 0.085, "c6a": 0.0765, "c6g": 0.068, "c7i": 0.08925, "c7a": 0.10264, "c7g": 0.0725, "c8g": 0.07976,
	"r5": 0.126, "r5a": 0.113, "r6i": 0.126, "r6a": 0.1134, "r6g": 0.1008, "r7i": 0.1323, "r7a": 0.15215, "r7g": 0.1071, "r8g": 0.11782,
	"t3": 0.0832, "t3a": 0.0752, "t4g": 0.0672,
}

// burstable are the families whose small sizes have as many virtual CPUs as large, and cost less.
var burstable = []string{"t3", "t3a", "t4g"}

// onDemand is the built-in price of a type.
func onDemand(instanceType string) (dollars float64, ok bool) {
	family, size, _ := strings.Cut(instanceType, ".")
	of, ok := large[family]
	n, sized := larges(size, slices.Contains(burstable, family))
	return of * n, ok && sized
}

// larges is how many of the size large a size costs.
func larges(size string, burstable bool) (float64, bool) {
	small := map[string]float64{"nano": 1. / 16, "micro": 1. / 8, "small": 1. / 4}
	switch n, ok := small[size]; {
	case ok && burstable:
		return n, true
	case size == "medium":
		return 0.5, true
	case size == "large":
		return 1, true
	case size == "xlarge":
		return 2, true
	}
	digits, ok := strings.CutSuffix(size, "xlarge")
	n, err := strconv.Atoi(digits)
	return float64(2 * n), ok && err == nil && n >= 2 && n <= 64
}
