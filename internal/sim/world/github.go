package world

import (
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// GitHub is GitHub: tokens, registrations and waiting jobs.
type GitHub struct {
	w       *World
	tokens  map[lifecycle.Secret]token
	Runners []*Runner // in order of id
	lastID  int64
	minted  int
	queued  []*Job
	Away    time.Time // until when it does not answer
	// Jobs are those that ask for a job pool, in order of id.
	Jobs []*WorkflowJob
	// OnDelivery is called with each webhook when GitHub delivers it; nil: there are none.
	OnDelivery func(lifecycle.Webhook)
	deliveries int // so far
	missed     []missedDelivery
	// registering counts the calls that make a JIT configuration, by the name of the runner.
	registering map[string]int
	// ListsDeliveries: GitHub lists the deliveries that it could not make, as it does for Apps.
	ListsDeliveries bool
}

type token struct {
	kind       lifecycle.RegistrationKind
	repository string
	expires    time.Time
}

// Runner is one registration.
type Runner struct {
	lifecycle.Runner
	Repository string
	labels     []string
	// former are labels that it had until they were replaced, and until when GitHub may still go by them.
	former      []string
	formerUntil time.Time
	// listedAt is from when it can be found.
	listedAt time.Time
	// Stray is set once it was given a job that named none of its labels.
	Stray   bool
	Host    *Host
	Job     *Job
	Deleted bool
}

func (g *GitHub) up() bool { return !g.w.Now.Before(g.Away) }

func (g *GitHub) mint(kind lifecycle.RegistrationKind, repository string) lifecycle.Registration {
	g.minted++
	secret := lifecycle.Secret(string(kind) + "-" + strconv.Itoa(g.minted))
	expires := g.w.Now.Add(g.w.Between(10*time.Minute, time.Hour))
	g.tokens[secret] = token{kind, repository, expires}
	return lifecycle.Registration{Kind: kind, URL: "https://github.test/" + repository, Secret: secret, ExpiresAt: expires}
}

// valid reports whether a token can be used now.
func (g *GitHub) valid(kind lifecycle.RegistrationKind, secret lifecycle.Secret, repository string) bool {
	t, ok := g.tokens[secret]
	return ok && t.kind == kind && t.repository == repository && g.w.Now.Before(t.expires)
}

// register adds a registration, in place of one with the same name.
func (g *GitHub) register(h *Host, repository, name string, labels []string) *Runner {
	if r := g.named(repository, name); r != nil {
		g.Remove(r)
	}
	g.lastID++
	r := &Runner{Runner: lifecycle.Runner{ID: g.lastID, Name: name}, Repository: repository, labels: labels, Host: h}
	if g.w.Hot && g.w.Chance(engine.FaultListedLate) {
		r.listedAt = g.w.Now.Add(g.w.Between(time.Second, 20*time.Second))
	}
	g.Runners = append(g.Runners, r)
	g.w.Tell("github", "registered", name)
	return r
}

// named is the registration with a name; nil: there is none.
func (g *GitHub) named(repository, name string) *Runner {
	for _, r := range g.Runners {
		if r.Repository == repository && r.Name == name {
			return r
		}
	}
	return nil
}

func (g *GitHub) Remove(r *Runner) {
	if r.Deleted {
		return
	}
	r.Deleted, r.Online = true, false
	g.Runners = slices.DeleteFunc(g.Runners, func(o *Runner) bool { return o == r })
	g.w.Tell("github", "registration removed", r.Name)
}
