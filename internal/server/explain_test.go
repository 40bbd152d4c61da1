package server_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// hostOf is a host that an operator had provisioned for a run, or was already.
func (w *world) hostOf(t *testing.T, run string) string {
	t.Helper()
	got, err := w.Provision(t.Context(), &remudav1.ProvisionRequest{Repository: repository, RunId: run})
	if err != nil {
		t.Fatal(err)
	}
	return got.GetInstances()[0].GetInstanceId()
}

// TestExplainAHost: to an operator all of it, by its id.
func TestExplainAHost(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	id := w.hostOf(t, "1")
	got, err := w.ExplainRun(ctx, &remudav1.ExplainRunRequest{InstanceId: id})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(got.GetSentences(), "\n")
	for _, part := range []string{"Host " + id, "serves run 1 of " + repository, "If nothing changes until", "created → running"} {
		if !strings.Contains(text, part) {
			t.Errorf("no word of %q in:\n%s", part, text)
		}
	}
	if len(got.GetEvents()) == 0 {
		t.Error("no events")
	}
	if _, err := w.ExplainRun(ctx, &remudav1.ExplainRunRequest{InstanceId: "i-none"}); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown host: %v", err)
	}
}

// TestWorkflowsAreToldOfTheirOwnHosts: of no other, and of no other run.
func TestWorkflowsAreToldOfTheirOwnHosts(t *testing.T) {
	c := newCI(t, rule())
	ctx := t.Context()
	first := c.hostOf(t, "41")
	if _, err := c.Release(ctx, &remudav1.ReleaseRequest{Repository: repository, RunId: "41", Wait: true}); err != nil {
		t.Fatal(err)
	}
	own, others := c.hostOf(t, "42"), c.hostOf(t, "43")
	if own != first {
		t.Fatalf("host %s was not reused: %s", first, own)
	}
	explain := func(id string) (*remudav1.ExplainRunResponse, error) {
		return c.ExplainRun(with(ctx, "Bearer "+c.issuer.Token(nil)), &remudav1.ExplainRunRequest{InstanceId: id})
	}
	got, err := explain(own)
	if err != nil || !strings.Contains(strings.Join(got.GetSentences(), "\n"), "serves run 42") {
		t.Errorf("its own host: %v, %v", got, err)
	}
	for _, e := range got.GetEvents() {
		if e.GetRunId() != "42" {
			t.Errorf("it is told of run %q: %s", e.GetRunId(), e.GetReason())
		}
	}
	var refusals []string
	for _, id := range []string{others, "i-none"} {
		_, err := explain(id)
		if status.Code(err) != codes.PermissionDenied || violated(status.Convert(err)) != "instance_id" {
			t.Errorf("host %s: %v, want PERMISSION_DENIED naming instance_id", id, err)
		}
		refusals = append(refusals, strings.ReplaceAll(status.Convert(err).Message(), id, "X"))
	}
	if refusals[0] != refusals[1] {
		t.Errorf("the refusals tell which hosts there are: %q", refusals)
	}
	_, err = c.ExplainRun(with(ctx, "Bearer "+c.issuer.Token(nil)), &remudav1.ExplainRunRequest{InstanceId: own, Repository: repository, RunId: "42"})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a host and a run: %v", err)
	}
}

// TestAJobIsOfTheRunThatIsNamed: the URL of a job has its run too. A workflow may name only its own, and learns of no other.
func TestAJobIsOfTheRunThatIsNamed(t *testing.T) {
	f, ctx := newFieldWorld(t), t.Context()
	jobOf7(f)
	for named, want := range map[[2]string]codes.Code{
		{repository, "7"}: codes.OK, {strings.ToUpper(repository), "7"}: codes.OK, {"", ""}: codes.OK,
		{repository, "8"}: codes.InvalidArgument, {"acme/other", "7"}: codes.InvalidArgument,
	} {
		_, err := f.world.ExplainRun(ctx, &remudav1.ExplainRunRequest{JobId: 70, Repository: named[0], RunId: named[1]})
		if status.Code(err) != want || want != codes.OK && (violated(status.Convert(err)) != "job_id" || !strings.Contains(err.Error(), "job 70 is of run 7 of "+repository)) {
			t.Errorf("named with %v: %v, want %v", named, err, want)
		}
	}
	c := newCI(t, rule())
	for field, req := range map[string]*remudav1.ExplainRunRequest{
		"job_id":     {JobId: 70, Repository: repository, RunId: "42"},
		"run_id":     {JobId: 70, Repository: repository, RunId: "41"},
		"repository": {JobId: 70, Repository: "acme/other", RunId: "42"},
	} {
		_, err := c.ExplainRun(with(ctx, "Bearer "+c.issuer.Token(nil)), req)
		if status.Code(err) != codes.PermissionDenied || violated(status.Convert(err)) != field {
			t.Errorf("a workflow asks %v: %v, want PERMISSION_DENIED naming %s", req, err, field)
		}
	}
}
