package dynamo_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/lifecycle/resources"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// tags are those of tables, which DynamoDB Local has not.
type tags struct {
	mu    sync.Mutex
	proxy *awstest.Proxy
	set   map[string]map[string]string // by TagResource, or by a test; by table
}

type tag struct{ Key, Value string }

func withTags(p *awstest.Proxy) *tags {
	s := &tags{proxy: p, set: map[string]map[string]string{}}
	p.Handle("dynamodb", "ListTagsOfResource", func(w http.ResponseWriter, r *http.Request, _ forward) {
		var request struct{ ResourceArn, NextToken string }
		_ = json.NewDecoder(r.Body).Decode(&request) // else it is of no table
		var answer struct {
			Tags      []tag
			NextToken string `json:",omitempty"`
		}
		// A page has the tag of the fleet, and the next one the others.
		for key, value := range s.of(strings.TrimPrefix(request.ResourceArn[strings.LastIndex(request.ResourceArn, "/"):], "/")) {
			if (key == "remuda:fleet") == (request.NextToken == "") {
				answer.Tags = append(answer.Tags, tag{key, value})
			}
		}
		if request.NextToken == "" {
			answer.NextToken = "more"
		}
		_ = json.NewEncoder(w).Encode(answer) // the caller sees that it is cut short
	})
	p.Handle("dynamodb", "TagResource", func(w http.ResponseWriter, r *http.Request, _ forward) {
		var request struct {
			ResourceArn string
			Tags        []tag
		}
		_ = json.NewDecoder(r.Body).Decode(&request) // else it is of no table
		s.put(request.ResourceArn[strings.LastIndex(request.ResourceArn, "/")+1:], request.Tags...)
		_, _ = fmt.Fprint(w, "{}")
	})
	return s
}

func (s *tags) put(table string, all ...tag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set[table] == nil {
		s.set[table] = map[string]string{}
	}
	for _, t := range all {
		s.set[table][t.Key] = t.Value
	}
}

// of are the tags of a table: those that it was made with, and those that it got later.
func (s *tags) of(table string) map[string]string {
	found := map[string]string{}
	for _, call := range s.proxy.Calls() {
		var request struct {
			TableName string
			Tags      []tag
		}
		if call.Operation != "CreateTable" || call.Status != http.StatusOK || json.Unmarshal(call.Body, &request) != nil || request.TableName != table {
			continue
		}
		for _, t := range request.Tags {
			found[t.Key] = t.Value
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(found, s.set[table])
	return found
}

// TestEnsureTags: a table has the tags of the fleet and of its owner from the call that makes it, since an organization may deny one without.
// A table that is there gets those that it lacks, and keeps its others.
func TestEnsureTags(t *testing.T) {
	racepass.CoveredBy(t, "TestReplicasEnsureAtOnce")
	t.Parallel()
	w, _ := ensuring(t)
	w.Store = dynamo.New(newClient(t, w.proxy.URL()), dynamo.Options{Tags: map[string]string{"team": "ci", "cost-center": "42"}})
	w.wantEnsure(t, false, created...)
	want := map[string]string{"remuda:fleet": "remuda", "team": "ci", "cost-center": "42"}
	for _, table := range []string{"instances", "reports", "requests", "jobs", "events", "leases"} {
		if diff := cmp.Diff(want, w.tags.of("remuda-"+table)); diff != "" {
			t.Errorf("tags of a new table %s (-want +got):\n%s", table, diff)
		}
	}
	w.wantEnsure(t, false)

	w.tags.put("remuda-jobs", tag{"team", "web"}, tag{"remuda:fleet", ""}, tag{"by", "a person"})
	table := []resources.Resource{{
		Kind: "table", Name: "remuda-jobs", Change: resources.Updated, Detail: "tags were missing or different: remuda:fleet, team",
	}}
	for _, dryRun := range []bool{true, false} {
		changes, err := w.Ensure(t.Context(), dryRun)
		if diff := cmp.Diff(table, changes); diff != "" || err != nil {
			t.Errorf("dry run %v: error %v, changes (-want +got):\n%s", dryRun, err, diff)
		}
		if is := w.tags.of("remuda-jobs")["team"]; is == "ci" == dryRun {
			t.Errorf("dry run %v: the table has the team %s", dryRun, is)
		}
	}
	want["by"] = "a person"
	if diff := cmp.Diff(want, w.tags.of("remuda-jobs")); diff != "" {
		t.Errorf("tags afterwards (-want +got):\n%s", diff)
	}
	w.wantEnsure(t, true)
}
