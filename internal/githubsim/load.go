package githubsim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/remuda-ci/remuda/internal/githubsim/appjwt"
	"github.com/remuda-ci/remuda/internal/githubsim/journal"
	"github.com/remuda-ci/remuda/internal/githubsim/state"
)

// load reads the journal. Silence counts from now, since no runner could be heard while the stand-in was away.
func (s *Server) load() error {
	j, rows, err := journal.Open(s.dir)
	if err != nil {
		return err
	}
	s.journal = j
	for k, raw := range rows {
		if err := s.loadRow(k, raw); err != nil {
			return fmt.Errorf("read %s %s: %w", k.Kind, k.ID, err)
		}
	}
	for _, j := range s.jobs {
		if j.Status == state.StatusQueued && j.RunnerID == 0 {
			if s.queue = append(s.queue, j); j.QueuedAt.IsZero() {
				j.QueuedAt = s.now() // written by an older stand-in
			}
		}
	}
	slices.SortFunc(s.queue, func(a, b *state.Job) int { return cmp.Compare(a.ID, b.ID) })
	s.outbox.Set(s.hook)
	return nil
}

func (s *Server) loadRow(k journal.Key, raw json.RawMessage) error {
	switch k.Kind {
	case state.KindRunner:
		r := &state.Runner{}
		if err := json.Unmarshal(raw, r); err != nil {
			return err
		}
		s.revive(r)
		s.runners[r.ID] = r
	case state.KindRun:
		r := &state.Run{}
		if err := json.Unmarshal(raw, r); err != nil {
			return err
		}
		s.runs[r.ID] = r
	case state.KindJob:
		j := &state.Job{}
		if err := json.Unmarshal(raw, j); err != nil {
			return err
		}
		s.jobs[j.ID] = j
	case state.KindToken:
		t := &state.Token{}
		if err := json.Unmarshal(raw, t); err != nil {
			return err
		}
		s.tokens[k.ID] = t
	case state.KindApp:
		return s.loadApp(raw)
	case state.KindGroups:
		return json.Unmarshal(raw, &s.extraGroups)
	case state.KindHook:
		return json.Unmarshal(raw, &s.hook)
	case state.KindCounter:
		var n int64
		if err := json.Unmarshal(raw, &n); err != nil {
			return err
		}
		s.counters[k.ID] = n
	default:
		return fmt.Errorf("unknown kind of row")
	}
	return nil
}

func (s *Server) loadApp(raw json.RawMessage) (err error) {
	a := &state.App{}
	if err := json.Unmarshal(raw, a); err != nil {
		return err
	}
	a.PublicKey, err = appjwt.ParseKey(a.Key)
	s.apps[a.ID] = a
	return err
}

func (s *Server) revive(r *state.Runner) {
	r.LastSeen, r.IdleSince, r.Sent, r.Changed = s.now(), s.now(), map[state.SentMessage]bool{}, make(chan struct{})
}
