package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// githubWorld is GitHub: tokens, registrations and waiting jobs.
type githubWorld struct {
	w       *world
	tokens  map[lifecycle.Secret]token
	runners []*runner // in order of id
	lastID  int64
	minted  int
	queued  []*job
	away    time.Time // until when it does not answer
}

type token struct {
	kind       lifecycle.RegistrationKind
	repository string
	expires    time.Time
}

// runner is one registration.
type runner struct {
	lifecycle.Runner
	repository string
	labels     []string
	host       *host
	job        *job
	deleted    bool
}

func (g *githubWorld) up() bool { return !g.w.now.Before(g.away) }

func (g *githubWorld) mint(kind lifecycle.RegistrationKind, repository string) lifecycle.Registration {
	g.minted++
	secret := lifecycle.Secret(string(kind) + "-" + strconv.Itoa(g.minted))
	expires := g.w.now.Add(g.w.between(10*time.Minute, time.Hour))
	g.tokens[secret] = token{kind, repository, expires}
	return lifecycle.Registration{Kind: kind, URL: "https://github.test/" + repository, Secret: secret, ExpiresAt: expires}
}

// valid reports whether a token can be used now.
func (g *githubWorld) valid(kind lifecycle.RegistrationKind, secret lifecycle.Secret, repository string) bool {
	t, ok := g.tokens[secret]
	return ok && t.kind == kind && t.repository == repository && g.w.now.Before(t.expires)
}

// register adds a registration, in place of one with the same name.
func (g *githubWorld) register(h *host, repository, name string, labels []string) *runner {
	for _, r := range g.runners {
		if r.repository == repository && r.Name == name {
			g.remove(r)
			break
		}
	}
	g.lastID++
	r := &runner{Runner: lifecycle.Runner{ID: g.lastID, Name: name}, repository: repository, labels: labels, host: h}
	g.runners = append(g.runners, r)
	g.w.tell("github", "registered", name)
	return r
}

func (g *githubWorld) remove(r *runner) {
	if r.deleted {
		return
	}
	r.deleted, r.Online = true, false
	g.runners = slices.DeleteFunc(g.runners, func(o *runner) bool { return o == r })
	g.w.tell("github", "registration removed", r.Name)
}

// githubPort is GitHub as a replica reaches it.
type githubPort struct{ w *world }

func (p githubPort) call(what string, do func() error) error {
	w := p.w
	w.calls++
	w.interrupt(what)
	switch {
	case !w.github.up():
		return unavailable(what, "GitHub is away")
	case w.chance(FaultGitHubRefused):
		return unavailable(what, "502")
	}
	err := do()
	lost := w.chance(FaultGitHubLost)
	w.interrupt(what)
	if lost {
		return unavailable(what, "no answer")
	}
	return err
}

func (p githubPort) token(kind lifecycle.RegistrationKind, repository string) (lifecycle.Registration, error) {
	var reg lifecycle.Registration
	err := p.call("mint "+string(kind)+" token", func() error {
		reg = p.w.github.mint(kind, repository)
		return nil
	})
	p.w.script.called("GitHub: mint a "+tokenNames[kind]+" token for "+repository, err)
	return reg, err
}

// tokenNames are what a story calls tokens.
var tokenNames = map[lifecycle.RegistrationKind]string{
	lifecycle.RegistrationToken: "registration", lifecycle.RegistrationRemove: "remove",
}

func (p githubPort) RegistrationToken(_ context.Context, repository string) (lifecycle.Registration, error) {
	return p.token(lifecycle.RegistrationToken, repository)
}

func (p githubPort) RemoveToken(_ context.Context, repository string) (lifecycle.Registration, error) {
	return p.token(lifecycle.RegistrationRemove, repository)
}

func (p githubPort) FindRunner(_ context.Context, repository, name string) (lifecycle.Runner, error) {
	var found lifecycle.Runner
	err := p.call("find runner", func() error {
		for _, r := range p.w.github.runners {
			if r.repository == repository && r.Name == name {
				found = r.Runner
				return nil
			}
		}
		return fmt.Errorf("find runner %s: %w", name, lifecycle.ErrNotFound)
	})
	p.w.script.called("GitHub: find runner "+name, err)
	return found, err
}

func (p githubPort) DeleteRunner(_ context.Context, repository string, id int64) error {
	w := p.w
	return p.call("delete runner", func() error {
		w.coverage.Actions[lifecycle.ActionDeleteRunner]++
		for _, r := range w.github.runners {
			if r.repository == repository && r.ID == id {
				if r.job != nil && r.Online {
					return fmt.Errorf("delete runner %s: %w", r.Name, lifecycle.ErrBusy)
				}
				w.checkDeleteRunner(r)
				w.script.called("GitHub: delete runner "+r.Name, nil)
				w.github.remove(r)
				return nil
			}
		}
		return nil
	})
}

func (p githubPort) Runners(_ context.Context, repository string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	var got lifecycle.Page[lifecycle.Runner]
	err := p.call("list runners", func() error {
		after, _ := strconv.ParseInt(page.After, 10, 64)
		for _, r := range p.w.github.runners {
			if r.repository != repository || r.ID <= after {
				continue
			}
			if len(got.Items) == page.Size() {
				got.Next = strconv.FormatInt(got.Items[len(got.Items)-1].ID, 10)
				return nil
			}
			if !p.w.chance(FaultUnlisted) {
				got.Items = append(got.Items, r.Runner)
			}
		}
		return nil
	})
	p.w.script.called(fmt.Sprintf("GitHub: list the runners of %s: %d", repository, len(got.Items)), err)
	return got, err
}
