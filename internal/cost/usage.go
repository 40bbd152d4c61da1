// Package cost turns counts of calls to AWS into requests and dollars. Its test
// makes the calls, on DynamoDB Local and moto, and renders docs/cost.md.
package cost

import (
	"maps"

	"github.com/remuda-ci/remuda/internal/aws"
)

// Usage is what something used of AWS. Fractions are those of a mean.
type Usage struct {
	// Calls are the requests that were sent.
	Calls map[aws.Call]float64
	// ReadUnits and WriteUnits are the request units that DynamoDB counted.
	ReadUnits, WriteUnits float64
}

// Plus is both together.
func (u Usage) Plus(v Usage) Usage {
	sum := Usage{Calls: maps.Clone(u.Calls), ReadUnits: u.ReadUnits + v.ReadUnits, WriteUnits: u.WriteUnits + v.WriteUnits}
	if sum.Calls == nil {
		sum.Calls = map[aws.Call]float64{}
	}
	for call, n := range v.Calls {
		sum.Calls[call] += n
	}
	return sum
}

// Times is so many of it.
func (u Usage) Times(n float64) Usage {
	product := Usage{Calls: map[aws.Call]float64{}, ReadUnits: u.ReadUnits * n, WriteUnits: u.WriteUnits * n}
	for call, count := range u.Calls {
		product.Calls[call] = count * n
	}
	return product
}

// Without is it without the calls of an operation. Their units stay.
func (u Usage) Without(call aws.Call) Usage {
	rest := u.Times(1)
	delete(rest.Calls, call)
	return rest
}

// Total is how many calls there were.
func (u Usage) Total() float64 { return u.sum(func(aws.Call) bool { return true }) }

// Of is how many calls there were to a service, such as "sqs".
func (u Usage) Of(service string) float64 {
	return u.sum(func(c aws.Call) bool { return c.Service == service })
}

// Reads is how many calls read from DynamoDB.
func (u Usage) Reads() float64 {
	return u.sum(func(c aws.Call) bool { return c.Service == "dynamodb" && aws.Reads(c.Operation) })
}

// Writes is how many calls wrote to DynamoDB.
func (u Usage) Writes() float64 {
	return u.sum(func(c aws.Call) bool { return c.Service == "dynamodb" && !aws.Reads(c.Operation) })
}

func (u Usage) sum(counts func(aws.Call) bool) (total float64) {
	for call, n := range u.Calls {
		if counts(call) {
			total += n
		}
	}
	return total
}

const million = 1e6

// Dollars is what it costs. A request to a queue has at most 10 messages of
// less than 1 KB, and so is never more than one of the 64 KB that SQS counts.
func (u Usage) Dollars(p Prices) float64 {
	return (u.ReadUnits*p.ReadUnits + u.WriteUnits*p.WriteUnits + u.Of("sqs")*p.QueueRequests) / million
}
