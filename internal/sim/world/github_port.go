package world

import (
	"context"
	"fmt"
	"strconv"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/sim/engine"
)

// GitHubPort is GitHub as a replica reaches it.
type GitHubPort struct{ w *World }

func (p GitHubPort) call(what string, do func() error) error {
	w := p.w
	w.Calls++
	w.Interrupt(what)
	switch {
	case !w.GitHub.up():
		return unavailable(what, "GitHub is away")
	case w.Chance(engine.FaultGitHubRefused):
		return unavailable(what, "502")
	}
	err := do()
	lost := w.Chance(engine.FaultGitHubLost)
	w.Interrupt(what)
	if lost {
		return unavailable(what, "no answer")
	}
	return err
}

func (p GitHubPort) token(kind lifecycle.RegistrationKind, repository string) (lifecycle.Registration, error) {
	var reg lifecycle.Registration
	err := p.call("mint "+string(kind)+" token", func() error {
		reg = p.w.GitHub.mint(kind, repository)
		return nil
	})
	p.w.called("GitHub: mint a "+tokenNames[kind]+" token for "+repository, err)
	return reg, err
}

// tokenNames are what a story calls tokens.
var tokenNames = map[lifecycle.RegistrationKind]string{
	lifecycle.RegistrationToken: "registration", lifecycle.RegistrationRemove: "remove",
}

func (p GitHubPort) RegistrationToken(_ context.Context, repository string) (lifecycle.Registration, error) {
	return p.token(lifecycle.RegistrationToken, repository)
}

func (p GitHubPort) RemoveToken(_ context.Context, repository string) (lifecycle.Registration, error) {
	return p.token(lifecycle.RegistrationRemove, repository)
}

func (p GitHubPort) FindRunner(_ context.Context, repository, name string) (lifecycle.Runner, error) {
	var found lifecycle.Runner
	err := p.call("find runner", func() error {
		for _, r := range p.w.GitHub.Runners {
			if r.Repository == repository && r.Name == name && !p.w.Now.Before(r.listedAt) {
				found = r.Runner
				return nil
			}
		}
		return fmt.Errorf("find runner %s: %w", name, lifecycle.ErrNotFound)
	})
	p.w.called("GitHub: find runner "+name, err)
	return found, err
}

func (p GitHubPort) DeleteRunner(_ context.Context, repository string, id int64) error {
	w := p.w
	return p.call("delete runner", func() error {
		w.Coverage.Actions[lifecycle.ActionDeleteRunner]++
		for _, r := range w.GitHub.Runners {
			if r.Repository == repository && r.ID == id {
				if r.Job != nil && r.Online {
					return fmt.Errorf("delete runner %s: %w", r.Name, lifecycle.ErrBusy)
				}
				w.emit(DeletingRunner{r})
				w.GitHub.Remove(r)
				return nil
			}
		}
		return nil
	})
}

func (p GitHubPort) Runners(_ context.Context, repository string, page lifecycle.PageOf) (lifecycle.Page[lifecycle.Runner], error) {
	var got lifecycle.Page[lifecycle.Runner]
	err := p.call("list runners", func() error {
		after, _ := strconv.ParseInt(page.After, 10, 64)
		for _, r := range p.w.GitHub.Runners {
			if r.Repository != repository || r.ID <= after {
				continue
			}
			if len(got.Items) == page.Size() {
				got.Next = strconv.FormatInt(got.Items[len(got.Items)-1].ID, 10)
				return nil
			}
			if !p.w.Chance(engine.FaultUnlisted) && !p.w.Now.Before(r.listedAt) {
				got.Items = append(got.Items, r.Runner)
			}
		}
		return nil
	})
	p.w.called(fmt.Sprintf("GitHub: list the runners of %s: %d", repository, len(got.Items)), err)
	return got, err
}

// Runner implements scaledown.Registrations.
func (p GitHubPort) Runner(_ context.Context, repository string, id int64) (lifecycle.Runner, error) {
	var found lifecycle.Runner
	err := p.call("find runner by id", func() error {
		for _, r := range p.w.GitHub.Runners {
			if r.Repository == repository && r.ID == id {
				found = r.Runner
				return nil
			}
		}
		return fmt.Errorf("find runner %d: %w", id, lifecycle.ErrNotFound)
	})
	return found, err
}
