package firstaccount

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/retry"
)

// everyRun begins the names of what any run makes, and is the path of its roles.
const everyRun = "first-account"

// newID is short, and the same for everything that one run makes.
func newID() string { return everyRun + "-" + strings.ToLower(rand.Text()[:6]) }

// session is one run of the checks, with all that it made.
type session struct {
	Options
	*findings.Record
	admin  admin
	id     string  // begins the names of what is made; the fleet's prefix
	failed []error // of checks that did not come to their end

	account, partition string
	places             []place
	image, hostImage   image // of the fleet, and of the machine that tries its role
	otherImage         image // of the architecture that image does not have; without an id: Amazon has none

	made              time.Time // the roles
	refused           *fleet    // that may not pass the role of hosts; nil: not tried yet
	roleID            string    // of the hosts
	fleet             *fleet    // with the role of controld
	tabled, templated bool      // the tables and the launch templates are there
	deleted           []string  // queues, which SQS goes on listing for a while
	orders            int
	ids               []string // of all machines that were launched
	machine           *launch  // that the checks look at; nil: not launched yet
}

// admin are the clients with the caller's own credentials.
type admin struct {
	ec2    *ec2.Client
	iam    *iam.Client
	sts    *sts.Client
	dynamo *dynamodb.Client
	sqs    *sqs.Client
}

// place is a subnet with its zone.
type place struct{ subnet, zone string }

// image is a machine image, with the size of its root volume.
type image struct {
	id, arch, name string
	gib            int
}

func newSession(o Options) (*session, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &session{Options: o, Record: findings.NewRecord(o.Progress), id: newID(), admin: admin{
		ec2: ec2.NewFromConfig(o.AWS), iam: iam.NewFromConfig(o.AWS), sts: sts.NewFromConfig(o.AWS), dynamo: dynamodb.NewFromConfig(o.AWS), sqs: sqs.NewFromConfig(o.AWS),
	}}, nil
}

// make makes one check and returns what it decided.
func (s *session) make(ctx context.Context, c check) []findings.Finding {
	s.Begin(c.name)
	if c.without != nil {
		if reason := c.without(s.Options); reason != "" {
			return s.Findings(c.name, c.assumptions, reason)
		}
	}
	if ctx.Err() != nil {
		return s.Findings(c.name, c.assumptions, interrupted(ctx).Error())
	}
	s.Say("%s", c.does)
	otherwise := "the check did not come that far"
	if err := c.run(ctx, s); err != nil {
		s.Say("the check ends: %v", err)
		s.failed = append(s.failed, fmt.Errorf("check %s: %w", c.name, err))
		otherwise = err.Error()
	}
	return s.Findings(c.name, c.assumptions, otherwise)
}

// await looks at AWS every Poll until ok, and returns how long that took and whether it came within the limit.
func (s *session) await(ctx context.Context, limit time.Duration, what string, ok func() (bool, error)) (took time.Duration, came bool, err error) {
	return s.Await(ctx, s.Times.Poll, limit, what, ok)
}

// must is await for what everything after it needs.
func (s *session) must(ctx context.Context, limit time.Duration, what string, ok func() (bool, error)) (time.Duration, error) {
	took, came, err := s.await(ctx, limit, what, ok)
	return took, findings.UnlessCame(took, came, err, what)
}

// pause is until the next look.
func (s *session) pause(ctx context.Context) error { return retry.Sleep(ctx, s.Times.Poll) }

// settled reports whether every service should know the roles by now.
func (s *session) settled() bool { return time.Since(s.made) >= s.Times.Settle }

// order is for one machine of a pool, with two vCPU and 2 GiB or what is next.
func (s *session) order(pool string, version string) lifecycle.LaunchOrder {
	s.orders++
	return lifecycle.LaunchOrder{
		Token: fmt.Sprintf("order-%d", s.orders), RequestID: fmt.Sprintf("%s-%d", s.id, s.orders), RunID: everyRun, Repository: "remuda/" + everyRun,
		Number: 1, Count: 1, Pool: pool, ResourceClass: "small", CPU: 2, MemoryMiB: 2048,
		UsageClass: lifecycle.UsageOnDemand, InstanceTypes: s.typesOf(pool), TemplateVersion: version,
	}
}

func (s *session) typesOf(pool string) []string {
	if pool == poolBoth && s.otherImage.id != "" {
		return slices.Concat(typesOf(s.image.arch), typesOf(s.otherImage.arch))
	}
	return typesOf(s.image.arch)
}

// typesOf are the cheapest types of an architecture that have two vCPU, and one that is in the catalogue of fleets.
func typesOf(arch string) []string {
	if arch == "arm64" {
		return []string{"t4g.small", "t4g.medium", "m7g.large"}
	}
	return []string{"t3a.small", "t3.small", "t3.medium", "m7i.large", "m6i.large"}
}

// listed are names in a sentence.
func listed(names []string) string { return strings.Join(names, ", ") }

func str(s string) *string { return sdk.String(s) }
