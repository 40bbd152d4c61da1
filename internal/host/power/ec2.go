// Package power ends the EC2 instance that the agent runs on.
package power

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
)

const (
	// callLimit bounds all tries of the call, with the SDK's pauses between
	// them. Less gives up on a hiccup; the machine costs money meanwhile. More
	// would keep the agent from feeding its watchdog, with commandLimit.
	callLimit = 15 * time.Second
	// commandLimit: the command only has to ask init, which then does it.
	commandLimit = 10 * time.Second
	// killLimit is for what the command started, after it was killed.
	killLimit = time.Second
	// Grace is how long a machine that EC2 ends may live on: EC2 tells it to shut
	// down within seconds, and init takes some more to do it. Less would cut off
	// services that write their last; more pays for a machine that nobody ends.
	Grace = 60 * time.Second
)

// LongestOff is how long Off may take, and LongestAwait Await.
const (
	LongestOff   = callLimit + commandLimit + killLimit
	LongestAwait = Grace + commandLimit + killLimit
)

// Terminator is what is used of EC2.
type Terminator interface {
	TerminateInstances(context.Context, *ec2.TerminateInstancesInput, ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error)
}

// Actions are what a host calls of EC2.
func Actions() []aws.Permission {
	return []aws.Permission{{
		Action: "ec2:TerminateInstances", Role: aws.RoleHost, On: aws.OnOwn,
		Why: "the agent ends its own machine when nobody else did",
	}}
}

// EC2 ends an instance by its own id.
type EC2 struct {
	Client     Terminator
	InstanceID string
	// Command powers the machine off where the call does not end it: the launch
	// template makes EC2 terminate an instance that powers itself off. Empty:
	// there is none.
	Command []string
	Logger  hclog.Logger
}

// Off returns when the end of the machine has begun. An error means that it has
// not, and that another try may do it.
func (e EC2) Off(ctx context.Context, why string) error {
	err := e.terminate(ctx)
	if err == nil {
		e.Logger.Info("EC2 ends this machine", "why", why)
		return nil
	}
	if ctx.Err() != nil {
		return err // told to stop, and not that the machine must
	}
	if len(e.Command) == 0 {
		return err
	}
	e.Logger.Warn("EC2 does not end this machine, powering it off", "why", why, "error", err)
	if commandErr := e.command(ctx); commandErr != nil {
		return errors.Join(err, commandErr)
	}
	return nil
}

// Await waits for the end of the machine, which Off has begun. When it does not
// come within Grace, whatever EC2 said, it powers the machine off. It returns
// once that has begun, or when ctx is done: that is how the end comes, since
// init stops everybody first. An error means that the machine goes on, and that
// Off must be tried again.
func (e EC2) Await(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(Grace):
	}
	if len(e.Command) == 0 {
		return fmt.Errorf("end this machine: it lives on %s after its end was ordered, and no command powers it off", Grace)
	}
	e.Logger.Warn("this machine lives on although its end was ordered, powering it off", "after", Grace)
	if err := e.command(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (e EC2) terminate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := e.Client.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{e.InstanceID}})
	if err != nil {
		return aws.Wrap("end this machine", err)
	}
	return nil
}

func (e EC2) command(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.Command[0], e.Command[1:]...)
	// What it started may hold its output open after it was killed.
	cmd.WaitDelay = killLimit
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	return fmt.Errorf("power off with %s: %w: %.200s", strings.Join(e.Command, " "), err, strings.TrimSpace(string(out)))
}
