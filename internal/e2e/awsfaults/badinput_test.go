package awsfaults_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ec2api "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/awstest/ec2gap"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// TestACallerIsToldWhatIsWrong: what comes of a Provision names the thing and
// the remedy, and when its time is over nothing is left of it.
func TestACallerIsToldWhatIsWrong(t *testing.T) {
	racepass.CoveredBy(t, "TestEveryCallOfALifeInTurn")
	tests := map[string]struct {
		break_ func(w *world)
		want   []string
	}{
		"expired credentials": {func(w *world) { w.refuse("dynamodb", "PutItem", "ExpiredTokenException") },
			[]string{"dynamodb:PutItem: ExpiredTokenException", "give valid credentials"}},
		"expired credentials at the launch": {func(w *world) { w.refuse("ec2", "CreateFleet", "RequestExpired") },
			[]string{"launch 2 machines of pool default", "RequestExpired", "check the credentials, and whether the clock of this machine is right"}},
		"a missing table": {func(w *world) {
			client, table := dynamodb.NewFromConfig(w.client()), sdk.String("remuda-instances")
			_, err := client.UpdateTable(w.t.Context(), &dynamodb.UpdateTableInput{TableName: table, DeletionProtectionEnabled: sdk.Bool(false)})
			check(w.t, err)
			_, err = client.DeleteTable(w.t.Context(), &dynamodb.DeleteTableInput{TableName: table})
			check(w.t, err)
			w.made = false
		}, []string{"there is no table remuda-instances in us-east-1: run Refresh"}},
		"an image that is gone": {func(w *world) {
			_, err := w.cloud.DeregisterImage(w.t.Context(), &ec2api.DeregisterImageInput{ImageId: sdk.String(w.ec2.Pools["default"].Images[image])})
			check(w.t, err)
		}, []string{"InvalidAMIID", "build a new image, or correct the images of pool default, and run Refresh"}},
		"a full subnet": {func(w *world) { w.gap.SetLimits(ec2gap.Limit{Code: "InsufficientFreeAddressesInSubnet"}) },
			[]string{"no free address in subnet " + "subnet-", "add a subnet to pool default"}},
		"a quota that is used up": {func(w *world) { w.gap.SetLimits(ec2gap.Limit{Code: "VcpuLimitExceeded"}) },
			[]string{"the account's quota of vCPU", "raise it in Service Quotas"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.must("refresh", w.fleet.NewRefresh(false))
			w.made = true
			test.break_(w)
			err := w.drive(w.provision("401", 2, func(s *lifecycle.Spec) { s.Timeout = time.Minute }))[0]
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			w.repair()
			w.pass(2 * time.Minute)
			w.wantNothing("afterwards")
			for _, q := range w.requests("401") {
				if q.Outcome != lifecycle.OutcomeShort || !q.DueAt.IsZero() {
					t.Errorf("the request came out as %q, due at %v", q.Outcome, q.DueAt)
				}
			}
		})
	}
}

// A queue is a hint: one that belongs to another account costs no host.
func TestAQueueOfAnotherAccountHoldsNobodyUp(t *testing.T) {
	racepass.CoveredBy(t, "TestEveryCallOfALifeInTurn")
	t.Parallel()
	w := newWorld(t, 1)
	w.must("refresh", w.fleet.NewRefresh(false))
	w.made = true
	for _, operation := range []string{"ReceiveMessage", "SendMessageBatch", "SendMessage", "GetQueueUrl", "DeleteMessageBatch"} {
		w.refuse("sqs", operation, "AccessDenied")
	}
	w.must("cold", w.provision("101", 2))
	w.must("release", w.release("101"))
	w.wantPooled("released", 2)
	warm := w.provision("102", 2)
	w.must("warm", warm)
	for _, taken := range warm.Request().Taken {
		if !taken.Reused {
			t.Errorf("host %s is new, and two were pooled", taken.InstanceID)
		}
	}
	_, err := w.newQueue().Receive(t.Context(), lifecycle.QueueName{ResourceClass: "large", UsageClass: lifecycle.UsageSpot}, 1)
	for _, part := range []string{"remuda-large-spot", "AccessDenied", "allow the action sqs:"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}

// TestAnotherRegionHasNoTables, and says so.
func TestAnotherRegionHasNoTables(t *testing.T) {
	racepass.CoveredBy(t, "TestEveryCallOfALifeInTurn")
	t.Parallel()
	w := newWorld(t, 1)
	w.must("refresh", w.fleet.NewRefresh(false))
	w.region = "eu-west-1"
	w.fleet = w.newFleet()
	err := w.drive(w.provision("401", 1))[0]
	if err == nil || !strings.Contains(err.Error(), "there is no table remuda-requests in eu-west-1: run Refresh") {
		t.Errorf("got %v", err)
	}
}

// refuse has a service refuse an operation.
func (w *world) refuse(service, operation, code string) {
	w.proxy.Handle(service, operation, func(rw http.ResponseWriter, r *http.Request, _ func(*http.Request) *awstest.Answer) {
		awstest.Fail(rw, r, http.StatusForbidden, code, "")
	})
}

// repair restores everything that a test broke, except an image.
func (w *world) repair() {
	w.gap = ec2gap.Install(w.proxy)
	w.proxy.Handle("dynamodb", "PutItem", func(rw http.ResponseWriter, r *http.Request, forward func(*http.Request) *awstest.Answer) {
		forward(r).Write(rw)
	})
	if !w.made {
		w.must("refresh", w.fleet.NewRefresh(false))
		w.made = true
	}
}
