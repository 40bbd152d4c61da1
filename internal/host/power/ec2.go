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
	// them. Less gives up on a hiccup; the machine costs money meanwhile.
	callLimit = 20 * time.Second
	// commandLimit: the command only has to ask init, which then does it.
	commandLimit = 20 * time.Second
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
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	return fmt.Errorf("power off with %s: %w: %.200s", strings.Join(e.Command, " "), err, strings.TrimSpace(string(out)))
}
