package costs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/remuda-ci/remuda/internal/lifecycle/meter"
	"github.com/remuda-ci/remuda/internal/policy/price"
)

// Who makes calls to AWS.
const (
	CallerControld = "controld"
	CallerAgents   = "agents"
)

// CallRow is the calls to one service of AWS, and what they cost. It is apart from the machines.
type CallRow struct {
	// Day is empty unless the report is by day.
	Day string
	// Caller is CallerControld or CallerAgents, and Service such as "dynamodb".
	Caller, Service       string
	Requests              int64
	ReadUnits, WriteUnits float64
	Dollars               float64
	// Estimated: the calls were not counted but follow from the time of the hosts. Rough: a price is that of another region.
	Estimated, Rough bool
}

// addCalls adds the calls of the days of the query. They are those of the whole fleet, so a report about a part of it has none.
func (c *Costs) addCalls(ctx context.Context, b *builder, report *Report) error {
	if !c.Calls || b.q.Repository != "" || b.q.Pool != "" || b.q.RunID != "" {
		return nil
	}
	rows := callSums{}
	begin, err := meter.ParseDay(b.q.Since)
	if err != nil {
		return err
	}
	for at := begin; meter.MonthOf(meter.DayOf(at)) <= meter.MonthOf(b.q.Until); at = at.AddDate(0, 1, 1-at.Day()) {
		days, err := c.Store.CallsOfMonth(ctx, meter.MonthOf(meter.DayOf(at)))
		if err != nil {
			return fmt.Errorf("read the calls of %s: %w", meter.MonthOf(meter.DayOf(at)), err)
		}
		for _, d := range days {
			if d.Day() < b.q.Since || d.Day() > b.q.Until {
				continue
			}
			for _, calls := range d.Services {
				rows.add(callKey{b.q.callDay(d.Day()), CallerControld, calls.Service}, calls)
			}
		}
	}
	for day, times := range b.days {
		if calls := price.AgentCalls(times); calls.Requests > 0 {
			rows.add(callKey{b.q.callDay(day), CallerAgents, calls.Service}, calls)
		}
	}
	report.Calls = rows.priced(c.Prices)
	for _, row := range report.Calls {
		report.CallDollars += row.Dollars
	}
	return nil
}

// callDay is the day of a row of calls.
func (q Query) callDay(day string) string {
	if q.By == ByDay {
		return day
	}
	return ""
}

// callKey is what the calls of a row have in common.
type callKey struct{ day, caller, service string }

type callSums map[callKey]meter.Calls

func (s callSums) add(k callKey, calls meter.Calls) {
	calls.Service = k.service
	s[k] = calls.Plus(s[k])
}

// priced are the rows, by day, controld before the agents.
func (s callSums) priced(prices price.List) []CallRow {
	keys := slices.SortedFunc(maps.Keys(s), func(a, b callKey) int {
		return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(b.caller, a.caller), cmp.Compare(a.service, b.service))
	})
	var rows []CallRow
	for _, k := range keys {
		calls := s[k]
		row := CallRow{
			Day: k.day, Caller: k.caller, Service: k.service, Requests: calls.Requests,
			ReadUnits: float64(calls.HalfReads) / 2, WriteUnits: float64(calls.Writes), Estimated: k.caller == CallerAgents,
		}
		used := price.Used{price.ReadUnit: row.ReadUnits, price.WriteUnit: row.WriteUnits}
		if k.service == "sqs" {
			used[price.QueueRequest] = float64(row.Requests)
		}
		row.Dollars, row.Rough = prices.OfCalls(used)
		rows = append(rows, row)
	}
	return rows
}
