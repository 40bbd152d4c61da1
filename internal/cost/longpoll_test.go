package cost_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/cost"
)

const (
	// longestPoll is the longest wait that SQS takes.
	longestPoll = 20
	// wakes are how many make one iteration: a median wants a sample.
	wakes = 200
	// tokenLength is that of a session token of an instance profile.
	tokenLength = 1200
	// tlsShare is what TLS and TCP add to each call, as to one of DynamoDB: 3.8 KB for 3.4 KB of HTTP.
	tlsShare = 1.1
)

// counted is a connection whose bytes are counted, both ways.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

// pollClient is the SDK's client as an agent would have it, and counts its bytes.
func pollClient(b *testing.B, bytes *atomic.Int64) *sqs.Client {
	c := awstest.Config(b, awstest.Moto(b))
	known, err := c.Credentials.Retrieve(b.Context())
	check(b, err)
	c.Credentials = credentials.NewStaticCredentialsProvider(known.AccessKeyID, known.SecretAccessKey, strings.Repeat("t", tokenLength))
	c.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return counted{conn, bytes}, err
	}}}
	return sqs.NewFromConfig(c)
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkLongPoll is what docs/performance.md says of a queue for each host, which its agent would read by long polls: how often, how
// many bytes, what an hour costs, and how long after the call of SendMessage the agent has the message. The queue is moto's, which wakes
// those who wait within its own process, so the network and the servers of SQS come on top.
func BenchmarkLongPoll(b *testing.B) {
	var bytes, sent atomic.Int64
	host, fleet, ctx := pollClient(b, &bytes), pollClient(b, &sent), b.Context()
	made, err := fleet.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: sdk.String("remuda-host-i-1")})
	check(b, err)
	poll := func() []types.Message {
		out, err := host.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl, WaitTimeSeconds: longestPoll, MaxNumberOfMessages: 1})
		check(b, err)
		return out.Messages
	}
	var empty time.Duration
	var size int64
	var took []time.Duration
	b.ResetTimer()
	for range b.N {
		began, before := time.Now(), bytes.Load()
		if got := poll(); len(got) > 0 {
			b.Fatalf("%d messages in an empty queue", len(got))
		}
		empty, size = empty+time.Since(began), size+bytes.Load()-before
		for n := range wakes {
			at := make(chan time.Time, 1)
			time.AfterFunc(time.Duration(20+n*37%100)*time.Millisecond, func() {
				at <- time.Now()
				_, err := fleet.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: made.QueueUrl, MessageBody: sdk.String("{}")})
				if err != nil {
					b.Error(err)
				}
			})
			got := poll()
			took = append(took, time.Since(<-at))
			_, err := host.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: made.QueueUrl, ReceiptHandle: got[0].ReceiptHandle})
			check(b, err)
		}
	}
	slices.Sort(took)
	calls := float64(b.N) * float64(time.Hour) / float64(empty)
	each := float64(size) / float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(calls, "calls/h")
	b.ReportMetric(each, "bytes/call")
	b.ReportMetric(calls*cost.Current.QueueRequests, "microdollars/h")
	b.ReportMetric(calls*each*tlsShare/1e9*cost.Current.NATTraffic*1e6, "NAT-microdollars/h")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "wake-p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1e3, "wake-p99-ms")
}
