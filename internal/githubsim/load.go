package githubsim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// load reads the journal. Silence counts from now: while the stand-in was away nobody could have been heard.
func (s *Server) load() error {
	j, rows, err := openJournal(s.dir)
	if err != nil {
		return err
	}
	s.journal = j
	for k, raw := range rows {
		if err := s.loadRow(k, raw); err != nil {
			return fmt.Errorf("read %s %s: %w", k.kind, k.id, err)
		}
	}
	for _, j := range s.jobs {
		if j.Status == statusQueued && j.RunnerID == 0 {
			s.queue = append(s.queue, j)
		}
	}
	slices.SortFunc(s.queue, func(a, b *job) int { return cmp.Compare(a.ID, b.ID) })
	s.outbox.set(s.hook)
	return nil
}

func (s *Server) loadRow(k rowKey, raw json.RawMessage) error {
	switch k.kind {
	case kindRunner:
		r := &runner{}
		if err := json.Unmarshal(raw, r); err != nil {
			return err
		}
		s.revive(r)
		s.runners[r.ID] = r
	case kindRun:
		r := &run{}
		if err := json.Unmarshal(raw, r); err != nil {
			return err
		}
		s.runs[r.ID] = r
	case kindJob:
		j := &job{}
		if err := json.Unmarshal(raw, j); err != nil {
			return err
		}
		s.jobs[j.ID] = j
	case kindToken:
		t := &token{}
		if err := json.Unmarshal(raw, t); err != nil {
			return err
		}
		s.tokens[k.id] = t
	case kindApp:
		return s.loadApp(raw)
	case kindGroups:
		return json.Unmarshal(raw, &s.extraGroups)
	case kindHook:
		return json.Unmarshal(raw, &s.hook)
	case kindCounter:
		var n int64
		if err := json.Unmarshal(raw, &n); err != nil {
			return err
		}
		s.counters[k.id] = n
	default:
		return fmt.Errorf("unknown kind of row")
	}
	return nil
}

func (s *Server) loadApp(raw json.RawMessage) (err error) {
	a := &app{}
	if err := json.Unmarshal(raw, a); err != nil {
		return err
	}
	a.key, err = parseKey(a.Key)
	s.apps[a.ID] = a
	return err
}

func (s *Server) revive(r *runner) {
	r.lastSeen, r.sent, r.changed = s.now(), map[sent]bool{}, make(chan struct{})
}
