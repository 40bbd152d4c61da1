package cost_test

import (
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/remuda-ci/remuda/internal/cost"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// The examples of whole bills, in jobs a day. One job in coldPart starts a machine.
var jobsADay = []float64{20, 300, 3000}

const (
	monthDays  = monthHours / 24.0
	coldPart   = 5
	idleTime   = 5.0 / 60 // hours in the pool after each job
	volumeGiB  = 50
	diskGiB    = 10   // of controld
	callBytes  = 3800 // of one read of a record, with its answer
	gigabyte   = 1e9
	oneReplica = 1
)

// bill is what a month costs, in dollars.
type bill struct {
	machines, volumes, controld, calls, addresses, nat, balancer, traffic, events float64
}

// least is a fleet with public addresses and a gateway endpoint for DynamoDB.
func (b bill) least() float64 { return b.machines + b.volumes + b.controld + b.calls + b.addresses }

// installed is the fleet of the template, in a network that it makes.
func (b bill) installed() float64 {
	return b.machines + b.volumes + b.controld + b.calls + b.nat + b.balancer
}

// most is the same without the endpoint, and with CloudTrail's data events.
func (b bill) most() float64 { return b.installed() + b.traffic + b.events }

// bill of a fleet with so many jobs a day.
func (m measured) bill(jobs float64) bill {
	jobs *= monthDays
	one := m.requests[0]
	running, idle := jobs*jobTime.Hours(), jobs*idleTime
	hosts := running + idle + jobs/coldPart*boot.Hours()
	agents := m.hour(runningName).Times(running).Plus(m.hour(idleName).Times(idle)).Plus(m.hour(createdName).Times(jobs / coldPart * boot.Hours()))
	used := agents.Plus(one.release.Times(jobs)).Plus(one.claim.Times(jobs - jobs/coldPart)).Plus(one.cold.Times(jobs / coldPart)).
		Plus(m.at(sizes[0]).hourly().Times(monthHours)).Plus(cost.Usage{ReadUnits: beats, WriteUnits: beats}.Times(oneReplica * monthHours))
	return bill{
		machines:  hosts * prices.Machine,
		volumes:   hosts * volumeGiB * prices.VolumeGiB / monthHours,
		controld:  oneReplica * (monthHours*prices.Controld + diskGiB*prices.VolumeGiB),
		calls:     used.Dollars(prices),
		addresses: (hosts + oneReplica*monthHours) * prices.Address,
		nat:       monthHours * (prices.NAT + prices.Address),
		balancer:  monthHours * prices.LoadBalancer,
		traffic:   used.Total() * callBytes / gigabyte * prices.NATTraffic,
		events:    used.Of("dynamodb") * prices.DataEvents / 1e6,
	}
}

// cheapWithAddresses is up to how many jobs a day public addresses cost less than a NAT gateway, in fifties.
func (m measured) cheapWithAddresses() float64 {
	none, one := m.bill(0), m.bill(1)
	jobs := (none.nat - none.addresses) / (one.addresses - none.addresses)
	return float64(int(jobs/50) * 50)
}

func (m measured) wholePart(line liner) {
	line(`
## Whole bills

A month of jobs of %s on %s with %d GiB, and each leaves its host in the pool for %d more minutes. One job in %d starts
a machine, which boots for %s. One controld on %s with %d GiB.

| dollars a month, with so many jobs a day | %s | %s | %s |
|---|---|---|---|`, duration(jobTime), prices.MachineType, volumeGiB, int(idleTime*60), coldPart, duration(boot), prices.ControldType, diskGiB,
		count(jobsADay[0]), count(jobsADay[1]), count(jobsADay[2]))
	row := func(name string, of func(bill) float64) {
		cells := ""
		for _, jobs := range jobsADay {
			cells += " " + money(of(m.bill(jobs))) + " |"
		}
		line("| %s |%s", name, cells)
	}
	row("the machines of the hosts", func(b bill) float64 { return b.machines })
	row("their volumes", func(b bill) float64 { return b.volumes })
	row("the machine of controld, with its volume", func(b bill) float64 { return b.controld })
	row("all calls of Remuda", func(b bill) float64 { return b.calls })
	row("public addresses, or", func(b bill) float64 { return b.addresses })
	row("one NAT gateway instead, with its address", func(b bill) float64 { return b.nat })
	row("and the calls through it, without a gateway endpoint for DynamoDB", func(b bill) float64 { return b.traffic })
	row("CloudTrail's data events, if a trail has DynamoDB's", func(b bill) float64 { return b.events })
	row("a load balancer, as of the template", func(b bill) float64 { return b.balancer })
	row("together: addresses, no load balancer", bill.least)
	row("together: [the template](aws.md) with a network of its own", bill.installed)
	row("together: the same without an endpoint for DynamoDB, and with data events", bill.most)
	line(`
A call counts as %s bytes. What the jobs themselves load is not counted: it costs %s a gigabyte through a NAT gateway.

What to switch on and off:

- **A gateway endpoint for DynamoDB**, always: it is free, and keeps the agents' reads away from the NAT gateway.
- **Public addresses** for hosts and no NAT gateway cost less up to %s jobs a day. A security group without a way in protects them as well as a private subnet.
- **No interface endpoints** for the sake of the bill: hosts need a way to GitHub in any case, and what controld and hosts ask of EC2, SQS and STS is little.
- **No data events of DynamoDB** for the fleet's tables, by an event selector of the trail. They cost more than the calls.
- **Idle time.** A host that waits costs its machine, which is %s times what its calls cost.
- **Old images.** Nothing deletes them. Each new image of 30 GB leaves a snapshot, at %s a gigabyte and month or less.`,
		count(callBytes), money(prices.NATTraffic), count(m.cheapWithAddresses()), count(float64(int(prices.Machine/m.hour(idleName).Dollars(prices)))), money(prices.SnapshotGiB))
}

// TestBytesOfACall holds callBytes against a read as the SDK sends it, with credentials as an instance has them. An answer with a record has some
// 1,300 bytes, and TLS and TCP add 350 to both together.
func TestBytesOfACall(t *testing.T) {
	racepass.OneGoroutine(t)
	wire := &recordedRequest{}
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", HTTPClient: wire, BaseEndpoint: aws.String("https://dynamodb.us-east-1.amazonaws.com"),
		Credentials: credentials.NewStaticCredentialsProvider("ASIAABCDEFGHIJKLMNOP", strings.Repeat("s", 40), strings.Repeat("t", 1200)),
	})
	_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("remuda-instances"), ConsistentRead: aws.Bool(false),
		Key: map[string]types.AttributeValue{"hostKey": &types.AttributeValueMemberS{Value: "AROAABCDEFGHIJKLMNOPQ:i-0123456789abcdef0"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const answer, transport = 1300, 350
	if all := wire.bytes + answer + transport; all < callBytes*9/10 || all > callBytes*11/10 {
		t.Errorf("a call has %d bytes, and the page counts %d", all, callBytes)
	}
}

type recordedRequest struct{ bytes int }

func (r *recordedRequest) Do(request *http.Request) (*http.Response, error) {
	dump, err := httputil.DumpRequestOut(request, true)
	r.bytes = len(dump)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: request}, err
}
