package price

import "slices"

// Unit is what calls to AWS are billed by.
type Unit string

// The units that cost something. Calls to EC2, ECS, STS, IAM and the like are free.
const (
	ReadUnit     Unit = "dynamodb-read-unit"
	WriteUnit    Unit = "dynamodb-write-unit"
	QueueRequest Unit = "sqs-request"
)

// Units lists every unit.
var Units = []Unit{ReadUnit, WriteUnit, QueueRequest}

// CallPrice is what a million of a unit costs.
type CallPrice struct {
	Unit Unit `yaml:"unit"`
	// Region is that of AWS; empty: any.
	Region string `yaml:"region"`
	// Dollars a million.
	Dollars float64 `yaml:"dollars_per_million"`
}

// Millions are the built-in prices: what a million of a unit costs in us-east-1, of standard tables on demand and of standard queues. Source:
// aws.amazon.com/dynamodb/pricing/on-demand and aws.amazon.com/sqs/pricing.
var Millions = map[Unit]float64{ReadUnit: 0.125, WriteUnit: 0.625, QueueRequest: 0.40}

// Million is what a million of a unit costs. rough says that it is the price of another region.
func (l List) Million(unit Unit) (dollars float64, rough bool) {
	i := slices.IndexFunc(l.Calls, func(p CallPrice) bool { return p.Unit == unit && (p.Region == "" || p.Region == l.Region) })
	if i >= 0 {
		return l.Calls[i].Dollars, false
	}
	return Millions[unit], l.Region != BuiltInRegion
}

// Used is how many units some calls took.
type Used map[Unit]float64

// OfCalls is what calls cost. rough says that a price is that of another region.
func (l List) OfCalls(used Used) (dollars float64, rough bool) {
	for _, unit := range Units {
		if n := used[unit]; n > 0 {
			million, far := l.Million(unit)
			dollars, rough = dollars+n*million, rough || far
		}
	}
	return dollars / 1e6, rough
}
