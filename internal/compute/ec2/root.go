package ec2

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	service "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// ReplaceRoot begins to replace the root volume of a running instance by what it was launched with: the snapshot of its image. EC2 boots the instance
// with the new volume and deletes the old one. The same token gives the same task. What EC2 refuses it refuses for the instance as it is: ErrRefused.
func (c *Compute) ReplaceRoot(ctx context.Context, instanceID, token string) (lifecycle.RootTask, error) {
	what := "replace the root volume of machine " + instanceID
	if len(valid([]string{instanceID})) == 0 {
		return lifecycle.RootTask{}, fmt.Errorf("%s: %w: no instance has such an id", what, lifecycle.ErrRefused)
	}
	out, err := paced(ctx, c.pace.terminations, what, c.api.CreateReplaceRootVolumeTask, &service.CreateReplaceRootVolumeTaskInput{
		InstanceId: &instanceID, ClientToken: &token, DeleteReplacedRootVolume: aws.Bool(true),
	})
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return lifecycle.RootTask{}, fmt.Errorf("%s: %w: EC2 has no such instance", what, lifecycle.ErrRefused)
	case err != nil:
		return lifecycle.RootTask{}, err
	case out.ReplaceRootVolumeTask == nil:
		return lifecycle.RootTask{}, &lifecycle.UnavailableError{What: what, Err: errors.New("EC2 has answered without a task")}
	}
	return rootTask(*out.ReplaceRootVolumeTask), nil
}

// RootTasks lists the replacements of the root volumes of instances, for as long as EC2 shows them.
func (c *Compute) RootTasks(ctx context.Context, instanceIDs []string) (tasks []lifecycle.RootTask, _ error) {
	const what = "list replacements of root volumes"
	ids := valid(instanceIDs)
	if len(ids) == 0 {
		return nil, nil
	}
	in := &service.DescribeReplaceRootVolumeTasksInput{Filters: []types.Filter{{Name: aws.String("instance-id"), Values: ids}}}
	for {
		out, err := paced(ctx, c.pace.reads, what, c.api.DescribeReplaceRootVolumeTasks, in)
		if err != nil {
			return nil, err
		}
		for _, t := range out.ReplaceRootVolumeTasks {
			tasks = append(tasks, rootTask(t))
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return tasks, nil
		}
	}
}

// rootTask is a task as EC2 has it. A state that is not known is under way.
func rootTask(t types.ReplaceRootVolumeTask) lifecycle.RootTask {
	task := lifecycle.RootTask{
		ID: aws.ToString(t.ReplaceRootVolumeTaskId), InstanceID: aws.ToString(t.InstanceId), State: lifecycle.RootReplacing, Said: string(t.TaskState),
	}
	switch t.TaskState {
	case types.ReplaceRootVolumeTaskStateSucceeded:
		task.State = lifecycle.RootReplaced
	case types.ReplaceRootVolumeTaskStateFailing, types.ReplaceRootVolumeTaskStateFailed, types.ReplaceRootVolumeTaskStateFailedDetached, failingDetached:
		task.State = lifecycle.RootFailed
	}
	return task
}

// failingDetached is a state that EC2 documents, and its service model lacks.
const failingDetached types.ReplaceRootVolumeTaskState = "failing-detached"
