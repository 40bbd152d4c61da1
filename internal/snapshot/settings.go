package snapshot

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/lifecycle/statement"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/policy/budget"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// settings are what answers depend on of the configuration. Durations are in nanoseconds, as in rows.
type settings struct {
	Pools []pool `json:"pools"`
	// Organization: the runners belong to the owners of the repositories.
	Organization bool          `json:"organization,omitempty"`
	Grace        time.Duration `json:"grace"`
	// ScaleDownEvery is how often idle hosts are looked for; 0: they are not.
	ScaleDownEvery time.Duration `json:"scaleDownEvery,omitempty"`
	// Jobs are the job pools; nil: there are no webhooks.
	Jobs     *jobs    `json:"jobs,omitempty"`
	Prices   *prices  `json:"prices,omitempty"`
	Budgets  []limit  `json:"budgets,omitempty"`
	Services []string `json:"services,omitempty"`
}

// pool is a fleet.Pool, as far as answers depend on it.
type pool struct {
	Name            string                 `json:"name"`
	ResourceClasses []string               `json:"resourceClasses,omitempty"`
	UsageClasses    []lifecycle.UsageClass `json:"usageClasses,omitempty"`
	InstanceTypes   []string               `json:"instanceTypes,omitempty"`
	Privileged      bool                   `json:"privileged,omitempty"`
	DefaultLabels   bool                   `json:"defaultLabels,omitempty"`
	Maximum         *int                   `json:"maximum,omitempty"`
	Policy          numbers                `json:"policy"`
	Warm            *warm                  `json:"warm,omitempty"`
	Stopped         *warm                  `json:"stopped,omitempty"`
}

// numbers is a lifecycle.Policy.
type numbers struct {
	Cloud             string                `json:"cloud,omitempty"`
	CreationTimeout   time.Duration         `json:"creationTimeout"`
	ClaimTimeout      time.Duration         `json:"claimTimeout"`
	MaxRuntime        time.Duration         `json:"maxRuntime"`
	ReleaseTimeout    time.Duration         `json:"releaseTimeout"`
	IdleTime          time.Duration         `json:"idleTime"`
	WarmTime          time.Duration         `json:"warmTime"`
	RestAfter         time.Duration         `json:"restAfter"`
	Awake             int                   `json:"awake"`
	StoppedMaximum    int                   `json:"stoppedMaximum,omitempty"`
	StopsFresh        bool                  `json:"stopsFresh,omitempty"`
	StoppedTime       time.Duration         `json:"stoppedTime,omitempty"`
	Hibernates        bool                  `json:"hibernates,omitempty"`
	Silence           time.Duration         `json:"silence"`
	ExternalTimeout   time.Duration         `json:"externalTimeout"`
	UnattendedTimeout time.Duration         `json:"unattendedTimeout"`
	ClaimMargin       time.Duration         `json:"claimMargin"`
	ReleasePoll       time.Duration         `json:"releasePoll"`
	DrainPoll         time.Duration         `json:"drainPoll"`
	EndPoll           time.Duration         `json:"endPoll"`
	JobPoll           time.Duration         `json:"jobPoll"`
	ForgetAfter       time.Duration         `json:"forgetAfter"`
	Reuse             lifecycle.Reuse       `json:"reuse"`
	Reset             statement.Level       `json:"reset,omitempty"`
	KeepsTrust        bool                  `json:"keepsTrust,omitempty"`
	DockerCache       string                `json:"dockerCache,omitempty"`
	MaxUses           int                   `json:"maxUses,omitempty"`
	MaxAge            time.Duration         `json:"maxAge,omitempty"`
	Standby           lifecycle.StandbyMode `json:"standby,omitempty"`
	Drift             lifecycle.Drift       `json:"drift,omitempty"`
}

// warm is a policy.WarmPolicy, as far as answers depend on it.
type warm struct {
	MinimumIdle int           `json:"minimumIdle"`
	Key         string        `json:"key,omitempty"`
	Schedules   []period      `json:"schedules,omitempty"`
	Lead        time.Duration `json:"lead"`
}

// period is a policy.Period.
type period struct {
	Cron      string          `json:"cron"`
	TimeZone  string          `json:"timeZone"`
	IdleCount int             `json:"idleCount"`
	Eviction  policy.Eviction `json:"eviction"`
}

type jobs struct {
	// URL is where people see the runs: the site of GitHub.
	URL   string    `json:"url"`
	Pools []jobPool `json:"pools"`
}

// jobPool is a fleet.JobPool, as far as answers depend on it.
type jobPool struct {
	Name    string `json:"name"`
	Minimum int    `json:"minimum"`
	Maximum int    `json:"maximum"`
}

// prices is a price.List.
type prices struct {
	Own       []ownPrice `json:"own,omitempty"`
	SpotShare float64    `json:"spotShare"`
	Region    string     `json:"region"`
	// CallsKept: the fleet keeps which calls to AWS it makes.
	CallsKept bool           `json:"callsKept,omitempty"`
	Calls     []ownCallPrice `json:"calls,omitempty"`
}

// ownPrice is a price.Price.
type ownPrice struct {
	InstanceType string               `json:"instanceType"`
	UsageClass   lifecycle.UsageClass `json:"usageClass,omitempty"`
	Region       string               `json:"region,omitempty"`
	Dollars      float64              `json:"dollars"`
}

// ownCallPrice is a price.CallPrice.
type ownCallPrice struct {
	Unit    price.Unit `json:"unit"`
	Region  string     `json:"region,omitempty"`
	Dollars float64    `json:"dollars"`
}

// limit is a budget.Budget.
type limit struct {
	Repository  string  `json:"repository,omitempty"`
	Owner       string  `json:"owner,omitempty"`
	Dollars     float64 `json:"dollars"`
	WarnPercent int     `json:"warnPercent"`
}

// settingsOf are those of a fleet.
func settingsOf(of Source) settings {
	o := of.Options
	s := settings{Services: of.Services, Organization: !strings.Contains(scopeOf(o)("o/n"), "/"), Grace: o.Timing.WithDefaults().Grace}
	for _, name := range slices.Sorted(maps.Keys(o.Pools)) {
		s.Pools = append(s.Pools, poolOf(o.Pools[name]))
	}
	if d := o.ScaleDown; d != nil && !d.PlanOnly {
		s.ScaleDownEvery = d.Interval()
	}
	if o.Jobs != nil {
		s.Jobs = jobsOf(*o.Jobs)
	}
	if o.Prices != nil {
		s.Prices = pricesOf(*o.Prices, o.CallsMade != nil)
	}
	for _, b := range o.Budgets {
		s.Budgets = append(s.Budgets, limit(b))
	}
	return s
}

func pricesOf(l price.List, callsKept bool) *prices {
	p := &prices{SpotShare: l.SpotShare, Region: l.Region, CallsKept: callsKept}
	for _, own := range l.Own {
		p.Own = append(p.Own, ownPrice(own))
	}
	for _, own := range l.Calls {
		p.Calls = append(p.Calls, ownCallPrice(own))
	}
	return p
}

// scopeOf names the owner of the runners of a repository.
func scopeOf(o fleet.Options) func(string) string {
	if o.ScaleDown == nil || o.ScaleDown.Scope == nil {
		return strings.ToLower
	}
	return o.ScaleDown.Scope
}

func poolOf(p fleet.Pool) pool {
	return pool{
		Name: p.Name, ResourceClasses: p.ResourceClasses, UsageClasses: p.UsageClasses, InstanceTypes: p.InstanceTypes,
		Privileged: p.Privileged, DefaultLabels: p.DefaultLabels, Maximum: p.Maximum, Policy: numbers(p.Policy),
		Warm: aheadOf(p.Warm), Stopped: aheadOf(p.Stopped),
	}
}

// aheadOf is what a pool launches ahead of need; nil: nothing.
func aheadOf(p *fleet.WarmPool) *warm {
	if p == nil {
		return nil
	}
	of := &warm{MinimumIdle: p.Policy.MinimumIdle, Key: p.Policy.Key, Lead: p.Policy.Lead}
	for _, s := range p.Policy.Schedules {
		of.Schedules = append(of.Schedules, period{s.Cron, s.TimeZone, s.IdleCount, s.Eviction})
	}
	return of
}

// jobPath is where the page of a job is, below the site.
const jobPath = "/%s/actions/runs/%s/job/%d"

func jobsOf(o fleet.JobOptions) *jobs {
	j := &jobs{Pools: []jobPool{}}
	if o.URL != nil {
		j.URL = strings.TrimSuffix(o.URL("o/n", "1", 1), fmt.Sprintf(jobPath, "o/n", "1", 1))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Pools)) {
		j.Pools = append(j.Pools, jobPool{name, o.Pools[name].Minimum, o.Pools[name].Maximum})
	}
	return j
}

// options are those of a fleet that has these settings, without its ports.
func (s settings) options() (fleet.Options, error) {
	o := fleet.Options{Pools: map[string]fleet.Pool{}, Classes: map[string]fleet.Class{}, Timing: fleet.Timing{Grace: s.Grace}}
	for _, p := range s.Pools {
		made, err := p.pool()
		if err != nil {
			return o, damaged("pool %.80q: %w", p.Name, err)
		}
		o.Pools[p.Name] = made
		for _, class := range p.ResourceClasses {
			o.Classes[class] = fleet.Class{} // what hosts of it have is in their rows
		}
	}
	if s.Prices != nil {
		o.Prices = s.Prices.list()
	}
	if s.Prices != nil && s.Prices.CallsKept {
		o.CallsMade = func() []meter.Calls { return nil } // a snapshot makes none itself
	}
	for _, b := range s.Budgets {
		o.Budgets = append(o.Budgets, budget.Budget(b))
	}
	if s.Jobs != nil {
		o.Jobs = s.Jobs.options()
	}
	return o, nil
}

func (p prices) list() *price.List {
	l := &price.List{SpotShare: p.SpotShare, Region: p.Region}
	for _, own := range p.Own {
		l.Own = append(l.Own, price.Price(own))
	}
	for _, own := range p.Calls {
		l.Calls = append(l.Calls, price.CallPrice(own))
	}
	return l
}

func (p pool) pool() (fleet.Pool, error) {
	made := fleet.Pool{
		Name: p.Name, ResourceClasses: p.ResourceClasses, UsageClasses: p.UsageClasses, InstanceTypes: p.InstanceTypes,
		Privileged: p.Privileged, DefaultLabels: p.DefaultLabels, Maximum: p.Maximum, Policy: lifecycle.Policy(p.Policy),
	}
	var err, wrong error
	made.Warm, err = p.Warm.pool()
	made.Stopped, wrong = p.Stopped.pool()
	return made, errors.Join(err, wrong)
}

// pool is what a pool launches ahead of need; nil: nothing.
func (w *warm) pool() (*fleet.WarmPool, error) {
	if w == nil {
		return nil, nil
	}
	made := &fleet.WarmPool{Policy: policy.WarmPolicy{MinimumIdle: w.MinimumIdle, Key: w.Key, Lead: w.Lead}}
	for _, s := range w.Schedules {
		read, err := policy.ParsePeriod(s.Cron, s.TimeZone, s.IdleCount, s.Eviction)
		if err != nil {
			return nil, err
		}
		made.Policy.Schedules = append(made.Policy.Schedules, read)
	}
	return made, nil
}

// options are the job pools; their store and GitHub are left to the caller.
func (j jobs) options() *fleet.JobOptions {
	o := &fleet.JobOptions{Pools: map[string]fleet.JobPool{}}
	for _, p := range j.Pools {
		o.Pools[p.Name] = fleet.JobPool{JobPool: policy.JobPool{Minimum: p.Minimum, Maximum: p.Maximum}}
	}
	if j.URL != "" {
		o.URL = func(repository, runID string, id int64) string {
			return j.URL + fmt.Sprintf(jobPath, repository, runID, id)
		}
	}
	return o
}
