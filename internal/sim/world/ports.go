package world

import "github.com/remuda-ci/remuda/internal/store"

// How a replica of controld reaches the parts of the world.

// Store is the store.
func (w *World) Store() store.Store { return store.New(storePort{w}) }

// QueuePort is the queue.
func (w *World) QueuePort() QueuePort { return QueuePort{w} }

// ComputePort is the cloud.
func (w *World) ComputePort() ComputePort { return ComputePort{w} }

// NoticePort is the queue of the cloud's notices.
func (w *World) NoticePort() NoticePort { return NoticePort{w} }

// GitHubPort is GitHub.
func (w *World) GitHubPort() GitHubPort { return GitHubPort{w} }

// SourcesPort is what GitHub says of runs and branches.
func (w *World) SourcesPort() SourcesPort { return SourcesPort{w} }

// JobsPort is the part of GitHub for jobs and job-scoped runners.
func (w *World) JobsPort() JobsPort { return JobsPort{w} }

// ECSPort is ECS.
func (w *World) ECSPort() ECSPort { return ECSPort{w} }
