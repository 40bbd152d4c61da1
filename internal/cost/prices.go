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
	// MachineGiB is the memory of such a host, in gibibytes.
	MachineGiB float64
	// Controld is an hour of the machine of a controld.
	Controld     float64
	ControldType string
	// Address is an hour of a public IPv4 address, NAT an hour of a NAT gateway, NATTraffic a gigabyte through it.
	Address, NAT, NATTraffic float64
	// LoadBalancer is an hour of a network load balancer, without what passes through it.
	LoadBalancer float64
	// VolumeGiB and SnapshotGiB are a gibibyte of gp3 and of a snapshot for a month.
	VolumeGiB, SnapshotGiB float64
	// DataEvents: per million data events of CloudTrail.
	DataEvents float64
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
		{"VPC", "https://aws.amazon.com/vpc/pricing/", "[February 2026](https://cloudburn.io/blog/aws-nat-gateway-pricing)"},
		{"ELB", "https://aws.amazon.com/elasticloadbalancing/pricing/", "[2025](https://clustercost.com/blog/network-load-balancer-pricing-2025)"},
		{"EBS", "https://aws.amazon.com/ebs/pricing/", "[a guide](https://www.cloudbolt.io/guide-to-aws-cost-optimization/aws-ebs-pricing/)"},
		{"CloudTrail", "https://aws.amazon.com/cloudtrail/pricing/", "the same page"},
	},
	ReadUnits:     0.125,
	WriteUnits:    0.625,
	QueueRequests: 0.40,
	Machine:       0.0816,
	MachineType:   "m7g.large",
	MachineGiB:    8,
	Controld:      0.0168,
	ControldType:  "t4g.small",
	Address:       0.005,
	NAT:           0.045,
	NATTraffic:    0.045,
	LoadBalancer:  0.0225,
	VolumeGiB:     0.08,
	SnapshotGiB:   0.05,
	DataEvents:    1,
}
