package cost

// Prices of AWS in one region, in dollars.
type Prices struct {
	Region string
	// Date on which they were looked up, and where.
	Date    string
	Sources []Source

	// Per million request units of DynamoDB, on demand, standard tables.
	ReadUnits, WriteUnits float64
	// QueueRequests: per million requests of a standard queue, of up to 64 KB.
	// The million of a month that is free is not taken off.
	QueueRequests float64
	// Machine is what an hour of an ordinary host costs, to compare with.
	Machine     float64
	MachineType string
}

// Source of a price: where AWS publishes it, and what quotes it.
type Source struct{ Of, Published, Quoted string }

// Current are the prices that docs/cost.md is computed with. Requests to EC2,
// STS, IAM and the instance metadata are free. After a change of these prices render
// the page again: go test ./internal/cost -run TestThePage -update.
var Current = Prices{
	Region: "us-east-1",
	Date:   "2026-11-21",
	Sources: []Source{
		{"DynamoDB", "https://aws.amazon.com/dynamodb/pricing/on-demand/",
			"[July 2025](https://airbyte.com/data-engineering-resources/dynamodb-pricing)"},
		{"SQS", "https://aws.amazon.com/sqs/pricing/",
			"[June 2026](https://www.factualminds.com/blog/amazon-sqs-pricing-64kb-rule-fifo-vs-standard/)"},
		{"EC2", "https://aws.amazon.com/ec2/pricing/on-demand/",
			"[June 2026](https://www.factualminds.com/blog/amazon-ec2-on-demand-pricing-instance-families-2026/)"},
	},
	ReadUnits:     0.125,
	WriteUnits:    0.625,
	QueueRequests: 0.40,
	Machine:       0.0816,
	MachineType:   "m7g.large",
}
