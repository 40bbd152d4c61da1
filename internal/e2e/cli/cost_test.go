package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestCost: a report while a run has its host and after, as a table, as JSON and as CSV.
func TestCost(t *testing.T) {
	s := newStage(t)
	if got := s.remuda("cost"); got.code != 0 || got.stdout != "" || !strings.Contains(got.stderr, "No such host was used from 20") {
		t.Errorf("a new fleet: %+v", got)
	}
	s.must("provision", "acme/shop/41")
	if got := s.must("cost", "--by", "run"); !strings.Contains(got, "acme/shop/41") || !strings.Contains(got, "total") {
		t.Errorf("while it runs:\n%s", got)
	}
	s.must("release", "acme/shop/41", "--wait")
	type row struct {
		Repository, RunID, JobID, Hosts, Busy string
		Dollars                               float64
	}
	report := func(args ...string) (rows []row) {
		var r struct{ Rows []row }
		if err := json.Unmarshal([]byte(s.must(append([]string{"cost", "-o", "json"}, args...)...)), &r); err != nil {
			t.Fatal(err)
		}
		return r.Rows
	}
	rows := report("--by", "run", "--since", "1d", "--repository", "acme", "--run", "41")
	if len(rows) != 1 || rows[0].RunID != "41" || rows[0].Hosts != "1" || rows[0].Busy == "" || rows[0].Dollars <= 0 {
		t.Errorf("after its release: %+v", rows)
	}
	if rows := report("--by", "job", "--run", "41"); len(rows) != 1 || rows[0].JobID != "0" || rows[0].Busy == "" {
		t.Errorf("by job, where no webhook said which: %+v", rows)
	}
	if rows := report("--repository", "other"); len(rows) != 0 {
		t.Errorf("of another owner: %+v", rows)
	}
	if got := s.must("cost", "--csv", "--by", "pool"); !strings.HasPrefix(got, "day,pool,instance_type,") || !strings.Contains(got, "\n,default,,,,") {
		t.Errorf("as CSV:\n%s", got)
	}
	s.must("provision", "acme/site/42")
	if got := s.remuda("cost", "--csv", "--rows", "1"); strings.Count(got.stdout, "\n") != 2 || !strings.Contains(got.stderr, "more rows are in the total") {
		t.Errorf("a CSV file that is cut does not say so: %+v", got)
	}
	if got := s.must("cost", "--csv"); strings.Count(got, "\n") != 4 {
		t.Errorf("as CSV, the two repositories and the pool:\n%s", got)
	}
	s.fails(2, "--rows: 10001 is not from 1 to 10000", "cost", "--rows", "10001")
	s.fails(2, "--by: \"price\" is not a kind of rows", "cost", "--by", "price")
	s.fails(2, "--since: \"0d\" is neither a day", "cost", "--since", "0d")
	s.fails(2, "--since: \"1h\" is neither a day", "cost", "--since", "1h")
	s.fails(2, "--until: \"yesterday\" is not a day", "cost", "--until", "yesterday")
	s.fails(2, "--run: \"x y\" is not a run", "cost", "--run", "x y")
	s.fails(2, "since: single jobs are kept for 31 days", "cost", "--by", "job", "--since", "100d")
	s.fails(2, "since: single runs are kept for 31 days", "cost", "--by", "run", "--since", "100d")
}

// TestBudgets: a run spends the budget of its repository, the next one is refused for it, and all who are asked say the same.
func TestBudgets(t *testing.T) {
	s := newStageWith(t, "limits: {budgets: [{repository: acme/shop, dollars_per_month: 0.01}, {owner: acme, dollars_per_month: 1000}]}\n"+
		"cost: {prices: [{instance_type: '*', dollars_per_hour: 1000}]}\nsweeps: {budgets: 1s}\n")
	if got := s.must("budgets"); !strings.Contains(got, "acme/shop") || strings.Count(got, "within") != 2 {
		t.Errorf("a new fleet:\n%s", got)
	}
	s.must("provision", "acme/shop/41")
	for !strings.Contains(s.must("budgets"), "used up") { // until the time of the test is over
	}
	const why = "limits.budgets allows repository acme/shop $0.01 in "
	s.fails(6, why, "provision", "acme/shop/42")
	if got := s.must("why", "acme/shop/42"); !strings.Contains(got, why) || !strings.Contains(got, "there are hosts again from ") {
		t.Errorf("why:\n%s", got)
	}
	if got := s.must("events", "--follow=false", "--run", "acme/shop/42"); !strings.Contains(got, why) {
		t.Errorf("events:\n%s", got)
	}
	var all struct{ Budgets []struct{ State string } }
	if err := json.Unmarshal([]byte(s.must("budgets", "-o", "json")), &all); err != nil || len(all.Budgets) != 2 || all.Budgets[0].State != "BUDGET_STATE_USED_UP" {
		t.Errorf("%v: %+v", err, all)
	}
	s.must("provision", "acme/site/43")
}
