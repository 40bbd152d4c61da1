package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/services/model"
)

// Service is a service of runners in containers, with a queue of its own. With a Cluster it is scaled from
// zero and back on ECS; without one its workers are started by others, and only its queue is kept.
type Service struct {
	// Region of the cluster; empty: that of AWS.
	Region string `yaml:"region"`
	// Cluster and ECSService are names, not ARNs.
	Cluster    string `yaml:"cluster"`
	ECSService string `yaml:"ecs_service"`
	// Maximum runners run at once.
	Maximum int `yaml:"maximum"`
	// BacklogPerRunner is how many jobs may wait for each runner before there is
	// one more. Small and a burst starts many for little; large and it waits.
	BacklogPerRunner int `yaml:"backlog_per_runner"`
	// IdleChecks is how often in a row, Sweeps.Services apart, nothing may wait and run before the service is
	// scaled to zero. A task takes a minute or so to start: 1 has the next job wait for it after each pause.
	IdleChecks int `yaml:"idle_checks"`
	// Queue tells what waits; by default it is the service's own worker jobs.
	Queue ServiceQueue `yaml:"queue"`
	// NudgeTokenFile holds the token that POST /api/scale asks for, read at each
	// call; empty: the call is refused for this service.
	NudgeTokenFile string `yaml:"nudge_token_file"`
	// WorkerTokenFile holds the tokens of the service's workers, one in each line,
	// read at each call; empty: only operators may use its queue.
	WorkerTokenFile string `yaml:"worker_token_file"`
	// Requeue has a job whose worker went silent wait for another, once.
	Requeue bool `yaml:"requeue"`
	// QueueTimeout is how long a job may wait for a worker. Shorter than an outage
	// of ECS, and jobs fail that could be done after it; longer, and jobs that no
	// worker takes count as waiting and keep a runner up for that time.
	QueueTimeout time.Duration `yaml:"queue_timeout"`
	// Labels are those of the service's runners on GitHub: a job of a webhook
	// whose labels are all among them is a reason to look at once.
	Labels []string `yaml:"labels"`
}

// ServiceQueue is where the jobs of a service wait.
type ServiceQueue struct {
	// PostgREST counts rows of a table; nil: the service's own worker jobs count.
	PostgREST *PostgREST `yaml:"postgrest"`
}

// PostgREST is a table of jobs behind an HTTP API that tells how many rows
// there are by a content-range header.
type PostgREST struct {
	// URL of the API, below which the tables are.
	URL string `yaml:"url"`
	// Queued and Busy are a table with a filter each: what waits for a runner, and what a runner works on.
	Queued string `yaml:"queued"`
	Busy   string `yaml:"busy"`
	// TokenFile holds the bearer token, read at each call; empty: none is sent.
	TokenFile string `yaml:"token_file"`
	// Stalled says which jobs of silent workers are marked as failed; nil: those of a table as in docs/services.md (StalledJobs).
	Stalled *Stalled `yaml:"stalled"`
}

// SetDefaults are those of a service with one runner.
func (s *Service) SetDefaults() {
	s.Maximum, s.BacklogPerRunner, s.IdleChecks = 1, defaultBacklogPerRunner, defaultIdleChecks
	s.QueueTimeout = model.JobQueueTime
}

const (
	defaultBacklogPerRunner = 10
	defaultIdleChecks       = 5
	maxServiceRunners       = 1000 // tasks that ECS lets a service have are 5000
	maxBacklogPerRunner     = 100_000
	maxIdleChecks           = 1000
	maxQueueTimeout         = 7 * 24 * time.Hour // as long as ended jobs are kept
)

var (
	serviceName = poolName // what proto/remuda/v1/service.proto lets be asked for
	ecsName     = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)
	restColumn  = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)
	restState   = regexp.MustCompile(`^[A-Za-z0-9_ -]{1,63}$`)
	restTable   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}(\?[A-Za-z0-9_.,=&()*:%-]{1,1000})?$`)
)

// Scaled reports whether the service runs on ECS and is scaled there.
func (s Service) Scaled() bool { return s.Cluster != "" }

// leastCounted is how many jobs are counted at least: for less than a cent a day
// the count that people see is right up to there.
const leastCounted = 1000

// CountedJobs is how many jobs are counted at most of those that wait in the
// service's own queue: scaling asks for no more.
func (s Service) CountedJobs() int { return max(leastCounted, s.Maximum*s.BacklogPerRunner+1) }

// OwnQueue reports whether the jobs of the service wait here.
func (s Service) OwnQueue() bool { return s.Queue.PostgREST == nil }

// serviceWarnings warn of tokens that pass in plaintext, and of jobs that may stay busy forever.
func (c *Config) serviceWarnings() (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		if p := c.Services[name].Queue.PostgREST; p != nil && p.Stalled == nil && c.StalledJobs(name) == nil {
			warnings = append(warnings, "services."+name+".queue.postgrest.busy has no filter such as status=eq.running, so a job whose worker died stays busy and keeps the service's runners: write a stalled section, with after: 0s if something else ends such jobs")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		if s := c.Services[name]; (s.WorkerTokenFile != "" || s.NudgeTokenFile != "") && !isLoopback(c.HTTP.Addr) {
			return append(warnings, "http.addr "+c.HTTP.Addr+" is plain HTTP, and workers and nudges send their tokens there: let nothing but a load balancer with TLS reach it")
		}
	}
	return warnings
}

// ServiceRegion is where the cluster of a service is; empty: as the SDK finds it.
func (c *Config) ServiceRegion(name string) string {
	if r := c.Services[name].Region; r != "" || c.Backend() == BackendLocal {
		return r
	}
	return c.AWS.Region
}

func (c *Config) validateServices(root strictyaml.Place) {
	services := root.At("services")
	few(services, len(c.Services))
	scaled := map[string]string{} // the service of the configuration that is this one of ECS
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		s, at := c.Services[name], services.At(name)
		if !serviceName.MatchString(name) {
			at.Errorf("is no name of a service; write 1 to 63 of a-z 0-9 and -")
		}
		s.validate(at)
		if p := s.Queue.PostgREST; p != nil && p.Stalled != nil && p.Stalled.After > 0 && p.Stalled.After < 2*c.Sweeps.Services {
			at.At("queue", "postgrest", "stalled", "after").Errorf("is %s, less than twice sweeps.services (%s), at which silent workers are looked for; write more", p.Stalled.After, c.Sweeps.Services)
		}
		if c.Webhooks == nil && len(s.Labels) > 0 {
			at.At("labels").Errorf("means nothing without webhooks, which announce jobs; add the webhooks section or leave it out")
		}
		if !s.Scaled() {
			s.validateUnscaled(at)
			continue
		}
		if c.Backend() == BackendLocal && s.Region == "" {
			at.At("region").Errorf("is missing, and there is no aws section that has one; write the region of the cluster, such as eu-west-1")
		}
		place := strings.Join([]string{c.ServiceRegion(name), s.Cluster, s.ECSService}, " ")
		if other, taken := scaled[place]; taken {
			at.At("ecs_service").Errorf("is that of service %s too; write another, so that each is scaled by one", other)
		}
		scaled[place] = name
	}
}

// validateUnscaled refuses what would be accepted and do nothing.
func (s Service) validateUnscaled(at strictyaml.Place) {
	for key, written := range map[string]bool{
		"region": s.Region != "", "queue": s.Queue.PostgREST != nil, "nudge_token_file": s.NudgeTokenFile != "", "labels": len(s.Labels) > 0,
	} {
		if written && s.ECSService == "" {
			at.At(key).Errorf("means nothing without cluster and ecs_service, by which the service is scaled; add them or leave it out")
		}
	}
}

func (s Service) validate(at strictyaml.Place) {
	at.At("region").Match(s.Region, regionName, "a region such as eu-west-1")
	for _, n := range []struct{ key, value, other string }{{"cluster", s.Cluster, s.ECSService}, {"ecs_service", s.ECSService, s.Cluster}} {
		switch {
		case n.value == "" && n.other != "":
			at.At(n.key).Errorf("is missing; write its name in ECS, 1 to 255 of a-z A-Z 0-9 _ -")
		case n.value != "" && !ecsName.MatchString(n.value):
			at.At(n.key).Errorf("is %.80q; write its name in ECS, 1 to 255 of a-z A-Z 0-9 _ -", n.value)
		}
	}
	at.At("maximum").Number(s.Maximum, 1, maxServiceRunners)
	at.At("backlog_per_runner").Number(s.BacklogPerRunner, 1, maxBacklogPerRunner)
	at.At("idle_checks").Number(s.IdleChecks, 1, maxIdleChecks)
	at.At("queue_timeout").Between(s.QueueTimeout, time.Minute, maxQueueTimeout)
	if s.Queue.PostgREST != nil {
		s.Queue.PostgREST.validate(at.At("queue", "postgrest"))
		for key, written := range map[string]bool{"worker_token_file": s.WorkerTokenFile != "", "requeue": s.Requeue, "queue_timeout": at.At("queue_timeout").Written()} {
			if written {
				at.At(key).Errorf("means nothing with queue.postgrest, where the service's jobs are then; remove one of them")
			}
		}
	}
	at.At("worker_token_file").OptionalPath(s.WorkerTokenFile)
	at.At("nudge_token_file").OptionalPath(s.NudgeTokenFile)
	words(at.At("labels"), s.Labels, jobLabel, "a label of 1 to 64 of a-z A-Z 0-9 . _ -")
}

func (p PostgREST) validate(at strictyaml.Place) {
	secret := ""
	if p.TokenFile != "" {
		secret = "would send the token in plaintext"
	}
	baseURL(at.At("url"), p.URL, "the base URL of an API; write one such as https://db.acme.com/rest/v1", secret)
	for key, table := range map[string]string{"queued": p.Queued, "busy": p.Busy} {
		if !restTable.MatchString(table) {
			at.At(key).Errorf("is %.80q; write a table and its filter, such as jobs?status=eq.queued", table)
		}
	}
	at.At("token_file").OptionalPath(p.TokenFile)
	if p.Stalled != nil {
		p.Stalled.validate(at.At("stalled"), p)
	}
}
