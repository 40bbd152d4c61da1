package forecast

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/replay"
)

// Search says what is searched for: the cheapest minimums and schedules of fresh hosts with which 95 of a hundred jobs wait for at most Wait.
type Search struct {
	// Wait is the bound; 0: nothing is searched for.
	Wait time.Duration
	// Zone is the time zone of the schedules.
	Zone *time.Location
}

// BoundError says that no number of fresh hosts is enough.
type BoundError struct {
	// Wait is the bound, and Least the shortest wait of 95 of a hundred jobs that was found.
	Wait, Least time.Duration
}

func (e *BoundError) Error() string {
	return fmt.Sprintf("no minimum and no schedule has 95 of a hundred jobs wait for at most %s: with all fresh hosts ready that there may be they wait up to %s. "+
		"Look at maximum, limits and standby of the policy, or allow more", e.Wait, e.Least)
}

// bounded is the percentile of waits that a search bounds.
const bounded = 95

// mostTries is how many candidates a search plays at most: a month of 50,000 jobs takes some 20 s for each.
const mostTries = 24

// candidate is a policy that was played.
type candidate struct {
	level   map[slot]int
	text    string
	outcome *replay.Outcome
}

func (c candidate) dollars() float64 { return c.outcome.Total().Dollars }

// searcher plays candidates: each is the policy of the question with other fresh hosts ready.
type searcher struct {
	q      Question
	raises []raise
	demand demand
	pools  []string
	tries  int
}

// cheapest finds a policy that keeps the bound. The raises are in the order of what they give for a dollar, so it first looks for the fewest
// that keep the bound, by halving their number again and again. Used hosts wait for jobs too, which the raises do not know: so it then takes
// back what can be spared, the dearest first. A *BoundError says that even all raises are not enough.
func (q Question) cheapest(ctx context.Context) (candidate, error) {
	s := q.searcher()
	best, err := s.try(ctx, nil)
	if err != nil || s.keeps(best) {
		return best, err
	}
	if best, err = s.try(ctx, levels(s.raises)); err != nil {
		return best, err
	}
	if !s.keeps(best) {
		return best, &BoundError{Wait: q.Search.Wait, Least: replay.Percentile(best.outcome.Waits, bounded)}
	}
	for few, many := 0, len(s.raises); many-few > 1; {
		middle := (few + many) / 2
		c, err := s.try(ctx, levels(s.raises[:middle]))
		if err != nil {
			return c, err
		}
		if !s.keeps(c) {
			few = middle
			continue
		}
		many, best = middle, c
	}
	return s.spare(ctx, best)
}

func (s *searcher) keeps(c candidate) bool {
	return replay.Percentile(c.outcome.Waits, bounded) <= s.q.Search.Wait
}

// spare takes back the hosts of one slot after the other, all of them and else half of them, while the bound is kept.
func (s *searcher) spare(ctx context.Context, best candidate) (candidate, error) {
	cost := func(of slot) float64 { return s.demand.dollars[of] * float64(best.level[of]) }
	slots := slices.SortedFunc(maps.Keys(best.level), func(a, b slot) int { return cmp.Or(cmp.Compare(cost(b), cost(a)), a.compare(b)) })
	for _, of := range slots {
		for _, hosts := range []int{0, best.level[of] / 2} {
			if s.tries >= mostTries {
				return best, nil
			}
			if hosts == 0 && best.level[of] == 0 {
				continue
			}
			level := maps.Clone(best.level)
			level[of] = hosts
			c, err := s.try(ctx, level)
			if err != nil {
				return c, err
			}
			if s.keeps(c) && c.dollars() < best.dollars() {
				best = c
				break
			}
		}
	}
	return best, nil
}

func (q Question) searcher() *searcher {
	pool := q.Policy.PoolOf()
	replaced := q.Times.Boot + q.Times.Clean + q.Policy.Timing.WithDefaults().Warm
	s := &searcher{q: q, demand: demandOf(q.History.Jobs, pool, q.Policy.DollarsAnHour, replaced, q.Search.Zone)}
	s.raises = s.demand.raises()
	for of := range s.demand.dollars {
		if !slices.Contains(s.pools, of.pool) {
			s.pools = append(s.pools, of.pool)
		}
	}
	slices.Sort(s.pools)
	return s
}

// try plays the policy with so many fresh hosts ready in each slot.
func (s *searcher) try(ctx context.Context, level map[slot]int) (candidate, error) {
	s.tries++
	s.q.say(fmt.Sprintf("candidate %d", s.tries))
	zone := s.q.Search.Zone.String()
	p, text := s.q.Policy, strings.Builder{}
	p.Pools = maps.Clone(p.Pools)
	text.WriteString("pools:\n")
	for _, name := range s.pools {
		r := readyAt(name, level)
		pool, err := r.with(p.Pools[name], zone)
		if err != nil {
			return candidate{}, err
		}
		p.Pools[name] = pool
		text.WriteString(r.text(name, zone))
	}
	o, err := replay.Play(ctx, s.q.History.Jobs, p, s.q.Times)
	return candidate{level, text.String(), o}, err
}
