package main

import (
	"github.com/remuda-ci/remuda/internal/compute/computetest"
	"github.com/remuda-ci/remuda/internal/compute/ec2"
	computememory "github.com/remuda-ci/remuda/internal/compute/memory"
	"github.com/remuda-ci/remuda/internal/compute/process"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github"
	queuememory "github.com/remuda-ci/remuda/internal/queue/memory"
	"github.com/remuda-ci/remuda/internal/queue/notices"
	"github.com/remuda-ci/remuda/internal/queue/sqs"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	storememory "github.com/remuda-ci/remuda/internal/store/memory"
	"github.com/remuda-ci/remuda/internal/store/sqlite"
	"github.com/remuda-ci/remuda/internal/telemetry"
)

// The adapters are in step with the ports of the use cases, which they must not import.
// Nor do their tests, which then run again only after a change that concerns them.
var (
	_ fleet.Store    = (*storememory.Store)(nil)
	_ fleet.JobStore = (*storememory.Store)(nil)
	_ fleet.Store    = (*sqlite.Store)(nil)
	_ fleet.JobStore = (*sqlite.Store)(nil)
	_ fleet.Store    = (*dynamo.Store)(nil)
	_ fleet.JobStore = (*dynamo.Store)(nil)

	_ fleet.Queue   = (*queuememory.Queue)(nil)
	_ fleet.Queue   = (*sqs.Queue)(nil)
	_ fleet.Notices = (*notices.Queue)(nil)

	_ fleet.Compute = (*computememory.Compute)(nil)
	_ fleet.Compute = (*process.Compute)(nil)
	_ fleet.Compute = (*ec2.Compute)(nil)
	_ fleet.Compute = computetest.Compute(nil)

	_ fleet.GitHub        = (*github.Client)(nil)
	_ fleet.GitHubJobs    = (*github.Client)(nil)
	_ fleet.GitHubSources = (*github.Client)(nil)

	_ fleet.Observer = (*telemetry.Metrics)(nil)
)
