// Package instrument fills metrics: it wraps ports so that their calls are counted, and sets the gauges that
// are counted on a scrape. internal/telemetry declares the metrics and knows no use-case.
package instrument

import (
	"context"
	"errors"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/lifecycle/notice"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/services/model"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// Calls counts the calls of a port by operation and outcome, such as "store.claim_instance".
type Calls struct {
	Metrics *telemetry.Metrics
	Port    string
}

// Called counts one call with its outcome.
func (c Calls) Called(operation string, err error) { c.Metrics.Called(c.Port+"."+operation, err) }

// count is Called for a deferred call: it reads the error that the call returns.
func (c Calls) count(operation string, err *error) { c.Called(operation, *err) }

// Queue is a queue whose calls are counted.
type Queue struct {
	fleet.Queue
	Calls
}

// Send implements fleet.Queue.
func (q Queue) Send(ctx context.Context, messages ...lifecycle.Message) (err error) {
	defer q.count("send", &err)
	return q.Queue.Send(ctx, messages...)
}

// Receive implements fleet.Queue.
func (q Queue) Receive(ctx context.Context, name lifecycle.QueueName, limit int) (_ []lifecycle.Delivery, err error) {
	defer q.count("receive", &err)
	return q.Queue.Receive(ctx, name, limit)
}

// Delete implements fleet.Queue.
func (q Queue) Delete(ctx context.Context, name lifecycle.QueueName, handles ...string) (err error) {
	defer q.count("delete", &err)
	return q.Queue.Delete(ctx, name, handles...)
}

// Return implements fleet.Queue.
func (q Queue) Return(ctx context.Context, name lifecycle.QueueName, handles ...string) (err error) {
	defer q.count("return", &err)
	return q.Queue.Return(ctx, name, handles...)
}

// noticeQueue is a queue of notices whose calls are counted.
type noticeQueue struct {
	fleet.Notices
	Calls
}

// Notices returns a queue of notices whose calls are counted, or nil for nil.
func Notices(notices fleet.Notices, metrics *telemetry.Metrics) fleet.Notices {
	if notices == nil {
		return nil
	}
	return noticeQueue{notices, Calls{metrics, "notices"}}
}

// Receive implements fleet.Notices.
func (q noticeQueue) Receive(ctx context.Context) (_ []notice.Delivery, err error) {
	defer q.count("receive", &err)
	return q.Notices.Receive(ctx)
}

// Delete implements fleet.Notices.
func (q noticeQueue) Delete(ctx context.Context, handles ...string) (err error) {
	defer q.count("delete", &err)
	return q.Notices.Delete(ctx, handles...)
}

// Compute is a cloud whose calls are counted.
type Compute struct {
	fleet.Compute
	Calls
}

// Launch implements fleet.Compute.
func (c Compute) Launch(ctx context.Context, order lifecycle.LaunchOrder) (_ []lifecycle.Machine, err error) {
	defer c.count("launch", &err)
	return c.Compute.Launch(ctx, order)
}

// Launched implements fleet.Compute.
func (c Compute) Launched(ctx context.Context, order lifecycle.LaunchOrder) (_ []lifecycle.Machine, err error) {
	defer c.count("launched", &err)
	return c.Compute.Launched(ctx, order)
}

// Describe implements fleet.Compute.
func (c Compute) Describe(ctx context.Context, instanceIDs []string) (_ []lifecycle.Machine, err error) {
	defer c.count("describe", &err)
	return c.Compute.Describe(ctx, instanceIDs)
}

// List implements fleet.Compute.
func (c Compute) List(ctx context.Context, page lifecycle.PageOf) (_ lifecycle.Page[lifecycle.Machine], err error) {
	defer c.count("list", &err)
	return c.Compute.List(ctx, page)
}

// Terminate implements fleet.Compute.
func (c Compute) Terminate(ctx context.Context, instanceIDs []string) (err error) {
	defer c.count("terminate", &err)
	return c.Compute.Terminate(ctx, instanceIDs)
}

// Stop implements fleet.Compute.
func (c Compute) Stop(ctx context.Context, instanceID string, hibernate bool) (err error) {
	defer c.count("stop", &err)
	return c.Compute.Stop(ctx, instanceID, hibernate)
}

// ReplaceRoot implements fleet.Compute.
func (c Compute) ReplaceRoot(ctx context.Context, instanceID, token string) (_ lifecycle.RootTask, err error) {
	defer c.count("replace_root", &err)
	return c.Compute.ReplaceRoot(ctx, instanceID, token)
}

// RootTasks implements fleet.Compute.
func (c Compute) RootTasks(ctx context.Context, instanceIDs []string) (_ []lifecycle.RootTask, err error) {
	defer c.count("root_tasks", &err)
	return c.Compute.RootTasks(ctx, instanceIDs)
}

// Start implements fleet.Compute.
func (c Compute) Start(ctx context.Context, instanceID string) (err error) {
	defer c.count("start", &err)
	return c.Compute.Start(ctx, instanceID)
}

// GitHub is a GitHub whose calls are counted.
type GitHub struct {
	fleet.GitHub
	Calls
}

// RegistrationToken implements fleet.GitHub.
func (g GitHub) RegistrationToken(ctx context.Context, repository string) (_ lifecycle.Registration, err error) {
	defer g.count("registration_token", &err)
	return g.GitHub.RegistrationToken(ctx, repository)
}

// RemoveToken implements fleet.GitHub.
func (g GitHub) RemoveToken(ctx context.Context, repository string) (_ lifecycle.Registration, err error) {
	defer g.count("remove_token", &err)
	return g.GitHub.RemoveToken(ctx, repository)
}

// FindRunner implements fleet.GitHub.
func (g GitHub) FindRunner(ctx context.Context, repository, name string) (_ lifecycle.Runner, err error) {
	defer g.count("find_runner", &err)
	return g.GitHub.FindRunner(ctx, repository, name)
}

// DeleteRunner implements fleet.GitHub.
func (g GitHub) DeleteRunner(ctx context.Context, repository string, id int64) (err error) {
	defer g.count("delete_runner", &err)
	return g.GitHub.DeleteRunner(ctx, repository, id)
}

// SetLabels implements fleet.GitHub.
func (g GitHub) SetLabels(ctx context.Context, repository string, id int64, labels []string) (err error) {
	defer g.count("set_labels", &err)
	return g.GitHub.SetLabels(ctx, repository, id, labels)
}

// Runners implements fleet.GitHub.
func (g GitHub) Runners(ctx context.Context, repository string, page lifecycle.PageOf) (_ lifecycle.Page[lifecycle.Runner], err error) {
	defer g.count("runners", &err)
	return g.GitHub.Runners(ctx, repository, page)
}

// Registrations are registrations whose calls are counted.
type Registrations struct {
	fleet.Registrations
	Calls
}

// Runner implements fleet.Registrations.
func (g Registrations) Runner(ctx context.Context, repository string, id int64) (_ lifecycle.Runner, err error) {
	defer g.count("runner", &err)
	return g.Registrations.Runner(ctx, repository, id)
}

// Sources is what says what runs were started by, with its calls counted.
type Sources struct {
	fleet.GitHubSources
	Calls
}

// RunSource implements fleet.GitHubSources.
func (g Sources) RunSource(ctx context.Context, repository, runID string) (_ cache.Source, err error) {
	defer g.count("run_source", &err)
	return g.GitHubSources.RunSource(ctx, repository, runID)
}

// Branch implements fleet.GitHubSources.
func (g Sources) Branch(ctx context.Context, repository, name, sha string) (_ cache.Branch, err error) {
	defer g.count("branch", &err)
	return g.GitHubSources.Branch(ctx, repository, name, sha)
}

// Mirror implements fleet.GitHubSources.
func (g Sources) Mirror(ctx context.Context, repository, branch string) (_ lifecycle.Mirror, err error) {
	defer g.count("mirror", &err)
	return g.GitHubSources.Mirror(ctx, repository, branch)
}

// Scaler is a scaler of services whose calls are counted.
type Scaler struct {
	services.Scaler
	Calls
}

// Describe implements services.Scaler. It counts as failed if it failed for one of the services.
func (s Scaler) Describe(ctx context.Context, names []string) (looks map[string]model.Observation) {
	var err error
	defer s.count("describe", &err)
	looks = s.Scaler.Describe(ctx, names)
	for _, look := range looks {
		err = errors.Join(err, look.Err)
	}
	return looks
}

// SetDesired implements services.Scaler.
func (s Scaler) SetDesired(ctx context.Context, service string, desired int) (err error) {
	defer s.count("set_desired", &err)
	return s.Scaler.SetDesired(ctx, service, desired)
}

// Backlog is a backlog whose calls are counted.
type Backlog struct {
	services.Backlog
	Calls
}

// Stalled is the jobs of silent workers of a service, whose calls are counted.
type Stalled struct {
	services.Stalled
	Calls
}

// FailStalled implements services.Stalled.
func (s Stalled) FailStalled(ctx context.Context, service string, now time.Time, dry bool) (_ []string, err error) {
	defer s.count("fail_stalled", &err)
	return s.Stalled.FailStalled(ctx, service, now, dry)
}

// Count implements services.Backlog.
func (b Backlog) Count(ctx context.Context, service string) (_ model.Backlog, err error) {
	defer b.count("count", &err)
	return b.Backlog.Count(ctx, service)
}
