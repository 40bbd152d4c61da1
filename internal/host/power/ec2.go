// Package power ends the EC2 instance that the agent runs on.
package power

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/logkey"
)

const (
	// callLimit bounds all tries of the call, with the SDK's pauses between them. Less would give up after a
	// short failure, and the machine costs money until the next try. More, with commandLimit, would keep the
	// agent from feeding its watchdog.
	callLimit = 15 * time.Second
	// commandLimit bounds the command, which only has to ask init to power off.
	commandLimit = 10 * time.Second
	// killLimit is how long to wait for children of the command after it was killed.
	killLimit = time.Second
	// Grace is how long a machine may live after EC2 accepted to terminate it. EC2 signals the shutdown
	// within seconds, and init takes some more to do it. Less would cut off services that are shutting down;
	// more pays for a machine whose termination failed.
	Grace = 60 * time.Second
)

// LongestOff is how long Off may take, and LongestAwait Await.
const (
	LongestOff   = callLimit + commandLimit + killLimit
	LongestAwait = Grace + commandLimit + killLimit
)

// Terminator is the part of EC2 that is used.
type Terminator interface {
	TerminateInstances(context.Context, *ec2.TerminateInstancesInput, ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error)
}

// Actions are the EC2 actions that a host calls.
func Actions() []aws.Permission {
	return []aws.Permission{{
		Action: "ec2:TerminateInstances", Role: aws.RoleHost, On: aws.OnOwn,
		Why: "the agent ends its own machine when controld did not",
	}}
}

// EC2 terminates an instance by its id.
type EC2 struct {
	Client     Terminator
	InstanceID string
	// Command powers the machine off if the call does not terminate it: the launch template makes EC2
	// terminate an instance that powers itself off. Empty for none.
	Command []string
	Logger  hclog.Logger
}

// Off returns once the end of the machine has begun. An error means that it has not, and
// that another try may succeed.
func (e EC2) Off(ctx context.Context, reason string) error {
	err := e.terminate(ctx)
	if err == nil {
		e.Logger.Info("EC2 ends this machine", logkey.Reason, reason)
		return nil
	}
	if ctx.Err() != nil {
		return err // the agent was stopped, which does not mean that the machine must end
	}
	if len(e.Command) == 0 {
		return err
	}
	e.Logger.Warn("EC2 does not end this machine, powering it off", logkey.Reason, reason, logkey.Error, err)
	if commandErr := e.command(ctx); commandErr != nil {
		return errors.Join(err, commandErr)
	}
	return nil
}

// Await waits for the end of the machine, which Off has begun. If that has not come within
// Grace, it powers the machine off, whatever EC2 has answered. It returns once that has
// begun, or when ctx is done: the end comes that way, since init first stops all services.
// An error means that the machine continues to run and that Off must be tried again.
func (e EC2) Await(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(Grace):
	}
	if len(e.Command) == 0 {
		return fmt.Errorf("end this machine: it lives on %s after its end was ordered, and no command powers it off", Grace)
	}
	e.Logger.Warn("this machine lives on although its end was ordered, powering it off", logkey.After, Grace)
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
	// Its children may keep its output open after it was killed.
	cmd.WaitDelay = killLimit
	out, err := cmd.CombinedOutput()
	if err == nil || terminated(err) {
		return nil
	}
	return fmt.Errorf("power off with %s: %w: %.200s", strings.Join(e.Command, " "), err, strings.TrimSpace(string(out)))
}

// terminated reports whether SIGTERM ended the command. The agent sends only SIGKILL. Init sends SIGTERM to all
// processes of the agent's unit once the shutdown has begun, and may do so before the command has exited. If
// the signal came from somewhere else, Await runs the command again.
func terminated(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}
