package config

import (
	"path"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// Cost says what hours of machines and calls to AWS cost, for reports.
type Cost struct {
	// Prices are those that are paid. The first that matches counts, before the built-in ones.
	Prices []price.Price `yaml:"prices"`
	// SpotPercent is what spot costs of the built-in on-demand price.
	SpotPercent int `yaml:"spot_percent"`
	// CallPrices are those of calls to AWS that are paid. The first that matches counts, before the built-in ones.
	CallPrices []price.CallPrice `yaml:"call_prices"`
}

// maxPrices is more than EC2 has instance types, spot and on-demand, in a region.
const maxPrices = 2000

// maxDollars an hour is more than the dearest type costs, and a million calls.
const maxDollars = 1000

func (c Cost) validate(at strictyaml.Place) {
	if n := len(c.Prices); n > maxPrices {
		at.At("prices").Errorf("has %d rows; write at most %d", n, maxPrices)
	}
	for i, p := range c.Prices {
		row := at.At("prices").Item(i)
		if _, err := path.Match(p.InstanceType, ""); err != nil || p.InstanceType == "" {
			row.At("instance_type").Errorf("%q is no type and no pattern; write one such as m7g.large or m7g.*", p.InstanceType)
		}
		if p.Region != "" {
			row.At("region").Match(p.Region, regionName, "a region such as eu-west-1")
		}
		if p.Dollars < 0 || p.Dollars > maxDollars {
			row.At("dollars_per_hour").Errorf("is %g; write a number from 0 to %d", p.Dollars, maxDollars)
		}
	}
	at.At("spot_percent").Number(c.SpotPercent, 0, 100)
	if n := len(c.CallPrices); n > maxPrices {
		at.At("call_prices").Errorf("has %d rows; write at most %d", n, maxPrices)
	}
	for i, p := range c.CallPrices {
		row := at.At("call_prices").Item(i)
		if p.Unit == "" {
			row.At("unit").Errorf("is missing; write one of %v", price.Units)
		}
		if p.Region != "" {
			row.At("region").Match(p.Region, regionName, "a region such as eu-west-1")
		}
		if p.Dollars < 0 || p.Dollars > maxDollars {
			row.At("dollars_per_million").Errorf("is %g; write a number from 0 to %d", p.Dollars, maxDollars)
		}
	}
}

// List is the same in the words of the policy, for a region.
func (c Cost) List(region string) price.List {
	return price.List{Own: c.Prices, SpotShare: float64(c.SpotPercent) / 100, Region: region, Calls: c.CallPrices}
}
