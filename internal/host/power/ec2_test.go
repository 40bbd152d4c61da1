package power_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/host/power"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// launched are machines that run.
func launched(t *testing.T, client *ec2.Client, n int32) []string {
	t.Helper()
	images, err := client.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"amazon"}})
	check(t, err)
	out, err := client.RunInstances(t.Context(), &ec2.RunInstancesInput{
		ImageId: images.Images[0].ImageId, MinCount: sdk.Int32(n), MaxCount: sdk.Int32(n), InstanceType: types.InstanceTypeC5Large,
	})
	check(t, err)
	var ids []string
	for _, i := range out.Instances {
		ids = append(ids, *i.InstanceId)
	}
	return ids
}

// lives reports whether EC2 still runs a machine.
func lives(t *testing.T, client *ec2.Client, id string) bool {
	t.Helper()
	out, err := client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	check(t, err)
	state := out.Reservations[0].Instances[0].State.Name
	return state == types.InstanceStateNamePending || state == types.InstanceStateNameRunning
}

// command leaves a file when it is run, and ends with a code.
func command(t *testing.T, code string) (args []string, ran func() bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ran")
	return []string{"/bin/sh", "-c", "echo no room >&2; : >" + file + "; exit " + code},
		func() bool { _, err := os.Stat(file); return err == nil }
}

func TestMachineEndsItselfAndNoOther(t *testing.T) {
	t.Parallel()
	client := ec2.NewFromConfig(awstest.Config(t, awstest.Moto(t)))
	ids := launched(t, client, 2)
	args, ran := command(t, "0")
	off := power.EC2{Client: client, InstanceID: ids[0], Command: args, Logger: hclog.NewNullLogger()}
	for range 2 { // it is safe to repeat
		check(t, off.Off(t.Context(), "test"))
	}
	if lives(t, client, ids[0]) || !lives(t, client, ids[1]) {
		t.Errorf("it lives: %v, want false; the other lives: %v, want true", lives(t, client, ids[0]), lives(t, client, ids[1]))
	}
	if ran() {
		t.Error("it was powered off, too")
	}
}

// refusing answers every call with one of EC2's errors.
func refusing(t *testing.T, status int, code string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`<Response><Errors><Error><Code>` + code + `</Code><Message>no</Message></Error></Errors></Response>`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func unreachable(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	return server.URL
}

func TestMachineThatEC2DoesNotEndIsPoweredOff(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		endpoint string
		class    error
	}{
		"refused":           {refusing(t, http.StatusForbidden, "UnauthorizedOperation"), lifecycle.ErrRefused},
		"protected":         {refusing(t, http.StatusBadRequest, "OperationNotPermitted"), lifecycle.ErrRefused},
		"of another region": {refusing(t, http.StatusBadRequest, "InvalidInstanceID.NotFound"), lifecycle.ErrNotFound},
		"throttled":         {refusing(t, http.StatusServiceUnavailable, "RequestLimitExceeded"), lifecycle.ErrUnavailable},
		"unreachable":       {unreachable(t), lifecycle.ErrUnavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			off := power.EC2{
				Client: ec2.NewFromConfig(awstest.Config(t, tt.endpoint)), InstanceID: "i-0123456789abcdef0", Logger: hclog.NewNullLogger(),
			}
			args, ran := command(t, "0")
			off.Command = args
			if err := off.Off(t.Context(), "test"); err != nil || !ran() {
				t.Errorf("error %v, powered off: %v", err, ran())
			}
			off.Command, ran = command(t, "1")
			err := off.Off(t.Context(), "test")
			if !errors.Is(err, tt.class) || !strings.Contains(err.Error(), "exit status 1: no room") || !ran() {
				t.Errorf("error %v, want %v and what the command said; it ran: %v", err, tt.class, ran())
			}
			off.Command = nil
			if err := off.Off(t.Context(), "test"); !errors.Is(err, tt.class) {
				t.Errorf("without a command: error %v, want %v", err, tt.class)
			}
			off.Command = []string{"/nowhere/poweroff"}
			if err := off.Off(t.Context(), "test"); !errors.Is(err, tt.class) || !errors.Is(err, os.ErrNotExist) {
				t.Errorf("without its command: error %v, want %v and %v", err, tt.class, os.ErrNotExist)
			}
		})
	}
}

// A shutdown that has begun ends the command that began it.
func TestShutdownEndsTheCommand(t *testing.T) {
	t.Parallel()
	for signal, begun := range map[string]bool{"TERM": true, "KILL": false, "SEGV": false} {
		off := power.EC2{
			Client: &never{err: errors.New("refused")}, InstanceID: "i-1",
			Command: []string{"/bin/sh", "-c", "kill -" + signal + " $$"}, Logger: hclog.NewNullLogger(),
		}
		if err := off.Off(t.Context(), "test"); (err == nil) != begun {
			t.Errorf("%s: error %v, the shutdown has begun: %v", signal, err, begun)
		}
	}
}

// never answers, or refuses with an error.
type never struct {
	asked []string
	err   error
}

func (n *never) TerminateInstances(
	ctx context.Context, in *ec2.TerminateInstancesInput, _ ...func(*ec2.Options),
) (*ec2.TerminateInstancesOutput, error) {
	n.asked = append(n.asked, in.InstanceIds...)
	if n.err != nil {
		return nil, n.err
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestSlowEC2IsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &never{}
		off := power.EC2{Client: client, InstanceID: "i-1", Logger: hclog.NewNullLogger()}
		began := time.Now()
		err := off.Off(t.Context(), "test")
		if took := time.Since(began); !errors.Is(err, lifecycle.ErrUnavailable) || took > 30*time.Second {
			t.Errorf("error %v after %s, want %v within 30s", err, took, lifecycle.ErrUnavailable)
		}
		if !slices.Equal(client.asked, []string{"i-1"}) {
			t.Errorf("asked to end %q", client.asked)
		}
	})
}

// An agent that is stopped leaves the machine alone.
func TestStoppedAgentPowersNothingOff(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	args, ran := command(t, "0")
	off := power.EC2{Client: &never{}, InstanceID: "i-1", Command: args, Logger: hclog.NewNullLogger()}
	if err := off.Off(ctx, "test"); err == nil || ran() {
		t.Errorf("error %v, powered off: %v", err, ran())
	}
}

// A machine that EC2 said to end and did not is powered off, but not before it
// had time to end.
func TestMachineThatLivesOnIsPoweredOff(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = w.Write([]byte(`<TerminateInstancesResponse><requestId>1</requestId></TerminateInstancesResponse>`))
	}))
	t.Cleanup(server.Close)
	tests := map[string]struct {
		args  func(t *testing.T) (args []string, ran func() bool)
		error string
	}{
		"powered off":   {func(t *testing.T) ([]string, func() bool) { return command(t, "0") }, ""},
		"not even that": {func(t *testing.T) ([]string, func() bool) { return command(t, "1") }, "exit status 1: no room"},
		"no command":    {func(*testing.T) ([]string, func() bool) { return nil, func() bool { return true } }, "it lives on 1m0s after"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			args, ran := tt.args(t)
			off := power.EC2{
				Client: ec2.NewFromConfig(awstest.Config(t, server.URL)), InstanceID: "i-1", Command: args, Logger: hclog.NewNullLogger(),
			}
			check(t, off.Off(t.Context(), "test"))
			if args != nil && ran() {
				t.Fatal("powered off although EC2 ends it")
			}
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := off.Await(t.Context())
				if took := time.Since(began); took < power.Grace || took > power.LongestAwait {
					t.Errorf("it took %s, want %s and a little", took, power.Grace)
				}
				if (err == nil) != (tt.error == "") || (err != nil && !strings.Contains(err.Error(), tt.error)) {
					t.Errorf("error %v, want %q", err, tt.error)
				}
			})
			if !ran() {
				t.Error("not powered off")
			}
		})
	}
}

// Init stops the agent before the machine is down: that is the end it waits for.
func TestMachineThatEndsIsNotPoweredOff(t *testing.T) {
	args, ran := command(t, "0")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		off := power.EC2{Client: &never{}, InstanceID: "i-1", Command: args, Logger: hclog.NewNullLogger()}
		began := time.Now()
		if err := off.Await(ctx); err != nil || time.Since(began) != 20*time.Second {
			t.Errorf("error %v after %s", err, time.Since(began))
		}
	})
	if ran() {
		t.Error("powered off")
	}
}

// The agent gives Off its time, with some to end what runs on the machine first.
func TestOffFitsIntoAStep(t *testing.T) {
	if spare := agent.EffectTimeout - power.LongestOff; spare < 3*time.Second {
		t.Errorf("to end the machine takes up to %s, which leaves %s of an effect", power.LongestOff, spare)
	}
}
