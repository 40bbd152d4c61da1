package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/server"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// The tokens of the workers of the services that newWorld has.
var (
	renderToken  = strings.Repeat("render-", 6)
	archiveToken = strings.Repeat("archive", 6)
)

func fixed(tokens ...string) server.TokenSource {
	return func() (list []lifecycle.Secret, err error) {
		for _, token := range tokens {
			list = append(list, lifecycle.Secret(token))
		}
		return list, nil
	}
}

func workerTokens() server.WorkerTokens {
	return server.WorkerTokens{"render": fixed("an older token of the workers of render", renderToken), "archive": fixed(archiveToken)}
}

// as calls with a token.
func as(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

func TestAJobOfAService(t *testing.T) {
	w := newWorldOf(t, server.Callers{Workers: workerTokens()})
	workers, ctx := remudav1.NewWorkerServiceClient(w.conn), as(t.Context(), renderToken)
	submitted, err := workers.SubmitJob(ctx, &remudav1.SubmitJobRequest{Service: "render", JobId: "a", Payload: []byte("do it")})
	if err != nil {
		t.Fatal(err)
	}
	want := &remudav1.WorkerJob{
		JobId: "a", Service: "render", State: remudav1.WorkerJobState_WORKER_JOB_STATE_WAITING, Payload: []byte("do it"),
		CreateTime: submitted.GetJob().GetCreateTime(), Reason: "it waits for a worker",
		Awaited: "a worker until " + submitted.GetJob().GetCreateTime().AsTime().Add(time.Hour).Format(time.RFC3339) + "; then it has failed",
	}
	if diff := cmp.Diff(want, submitted.GetJob(), protocmp.Transform()); diff != "" || want.GetCreateTime() == nil {
		t.Errorf("submitted (-want +got):\n%s", diff)
	}
	claimed, err := workers.ClaimJob(ctx, &remudav1.ClaimJobRequest{Service: "render", WorkerId: "w", Version: "1.0"})
	if err != nil || claimed.GetJob().GetWorkerId() != "w" || string(claimed.GetJob().GetPayload()) != "do it" || claimed.GetJob().GetAttempt() != 1 {
		t.Fatalf("claimed: %v, error %v", claimed, err)
	}
	none, err := workers.ClaimJob(ctx, &remudav1.ClaimJobRequest{Service: "render", WorkerId: "x"})
	if err != nil || none.GetJob() != nil {
		t.Errorf("claimed by another: %v, error %v", none, err)
	}
	said, err := workers.AppendJobLog(ctx, &remudav1.AppendJobLogRequest{Service: "render", JobId: "a", WorkerId: "w", Attempt: 1, Lines: "begun\n"})
	if err != nil || said.GetLogBytes() != 6 {
		t.Errorf("said: %v, error %v", said, err)
	}
	finished, err := workers.FinishJob(ctx, &remudav1.FinishJobRequest{Service: "render", JobId: "a", WorkerId: "w", Attempt: 1, Succeeded: true})
	if err != nil || finished.GetJob().GetState() != remudav1.WorkerJobState_WORKER_JOB_STATE_SUCCEEDED {
		t.Errorf("finished: %v, error %v", finished, err)
	}
	got, err := workers.GetJob(t.Context(), &remudav1.GetJobRequest{Service: "render", JobId: "a"}) // by an operator
	if diff := cmp.Diff(finished.GetJob(), got.GetJob(), protocmp.Transform()); err != nil || diff != "" || got.GetJob().GetLogTail() != "begun\n" {
		t.Errorf("error %v, got (-want +got):\n%s", err, diff)
	}
	beat, err := workers.Heartbeat(ctx, &remudav1.HeartbeatRequest{Service: "render", WorkerId: "w", Version: "1.1"})
	if err != nil || !beat.GetWorker().GetOnline() || beat.GetWorker().GetVersion() != "1.1" {
		t.Errorf("heartbeat: %v, error %v", beat, err)
	}
	for state, n := range map[remudav1.WorkerJobState]int{
		remudav1.WorkerJobState_WORKER_JOB_STATE_SUCCEEDED: 1, remudav1.WorkerJobState_WORKER_JOB_STATE_WAITING: 0,
	} {
		list, err := workers.ListJobs(t.Context(), &remudav1.ListJobsRequest{Service: "render", States: []remudav1.WorkerJobState{state, state}})
		if err != nil || len(list.GetJobs()) != n {
			t.Errorf("%s: got %v and error %v, want %d", state, list, err, n)
		}
	}
	list, err := workers.ListJobs(ctx, &remudav1.ListJobsRequest{Service: "render"})
	listed := proto.CloneOf(finished.GetJob())
	listed.Payload, listed.LogTail = nil, ""
	if diff := cmp.Diff([]*remudav1.WorkerJob{listed}, list.GetJobs(), protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("error %v, all jobs (-want +got):\n%s", err, diff)
	}
	var ids []string
	for of := (&remudav1.ListWorkersRequest{Service: "render", PageSize: 1}); ; {
		page, err := workers.ListWorkers(ctx, of)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range page.GetWorkers() {
			ids = append(ids, fmt.Sprint(one.GetWorkerId(), one.GetOnline(), one.GetJobId()))
		}
		if of.PageToken = page.GetNextPageToken(); of.GetPageToken() == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"wtrue", "xtrue"}, ids); diff != "" {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
	for _, token := range []string{renderToken, "Bearer"} {
		if strings.Contains(w.log.String(), token) {
			t.Errorf("the log tells %q", token)
		}
	}
	if !strings.Contains(w.log.String(), "service=render") || !strings.Contains(w.log.String(), `caller="a worker of render"`) {
		t.Errorf("the log does not tell whose job it is:\n%s", w.log)
	}
}

// A job without an id gets one that no other job has.
func TestAJobWithoutAnID(t *testing.T) {
	w := newWorldOf(t, server.Callers{Workers: workerTokens()})
	workers, ids := remudav1.NewWorkerServiceClient(w.conn), map[string]bool{}
	for range 2 {
		got, err := workers.SubmitJob(as(t.Context(), renderToken), &remudav1.SubmitJobRequest{Service: "render", Payload: []byte("do it")})
		if err != nil || len(got.GetJob().GetJobId()) != 32 {
			t.Errorf("submitted %v (%v), want an id of 32 hex digits", got, err)
		}
		ids[got.GetJob().GetJobId()] = true
	}
	if len(ids) != 2 {
		t.Errorf("the ids of two jobs are %v", ids)
	}
}

// workerErrors are calls of a worker of render, and the answer of each.
var workerErrors = []struct {
	name string
	call string
	req  proto.Message
	code codes.Code
	want string
}{
	{"no service", "SubmitJob", &remudav1.SubmitJobRequest{Service: "UP"}, codes.InvalidArgument, "service: does not match regex pattern"},
	{"a long payload", "SubmitJob", &remudav1.SubmitJobRequest{Service: "render", Payload: make([]byte, 65537)}, codes.InvalidArgument, "payload: "},
	{"another payload", "SubmitJob", &remudav1.SubmitJobRequest{Service: "render", JobId: "taken", Payload: []byte("y")}, codes.AlreadyExists,
		"job taken of service render: the same job_id was used with another body"},
	{"another service", "SubmitJob", &remudav1.SubmitJobRequest{Service: "archive", JobId: "a"}, codes.PermissionDenied,
		"the token is that of a worker of render: it is good for no other service"},
	{"no worker", "ClaimJob", &remudav1.ClaimJobRequest{Service: "render"}, codes.InvalidArgument, "worker_id: "},
	{"an unknown job", "GetJob", &remudav1.GetJobRequest{Service: "render", JobId: "b"}, codes.NotFound, "read job b of service render: not found"},
	{"log of an unknown job", "AppendJobLog", &remudav1.AppendJobLogRequest{Service: "render", JobId: "b", WorkerId: "w", Attempt: 1}, codes.NotFound, "not found"},
	{"log of another's job", "AppendJobLog", &remudav1.AppendJobLogRequest{Service: "render", JobId: "taken", WorkerId: "x", Attempt: 1}, codes.FailedPrecondition,
		"attempt 1 of job taken is with another worker, and the job is with worker w, attempt 1 (worker w has it); worker x has to stop it: nothing was changed"},
	{"a gap in the log", "AppendJobLog", &remudav1.AppendJobLogRequest{Service: "render", JobId: "taken", WorkerId: "w", Attempt: 1, Offset: 7}, codes.InvalidArgument,
		"offset: is 7, and the log has 0 bytes: send what is between first"},
	{"an end of another's job", "FinishJob", &remudav1.FinishJobRequest{Service: "render", JobId: "taken", WorkerId: "x", Attempt: 1}, codes.FailedPrecondition, "worker x has to stop it"},
	{"log of an attempt to come", "AppendJobLog", &remudav1.AppendJobLogRequest{Service: "render", JobId: "taken", WorkerId: "w", Attempt: 2}, codes.FailedPrecondition,
		"attempt 2 of job taken was not begun, and the job is with worker w, attempt 1 (worker w has it); send the attempt that ClaimJob gave: nothing was changed"},
	{"log of no attempt", "AppendJobLog", &remudav1.AppendJobLogRequest{Service: "render", JobId: "taken", WorkerId: "w"}, codes.InvalidArgument,
		"attempt: must be greater than or equal to 1"},
	{"an end of no attempt", "FinishJob", &remudav1.FinishJobRequest{Service: "render", JobId: "taken", WorkerId: "w"}, codes.InvalidArgument,
		"attempt: must be greater than or equal to 1"},
	{"jobs of no state", "ListJobs", &remudav1.ListJobsRequest{Service: "render", States: make([]remudav1.WorkerJobState, 1)}, codes.InvalidArgument, "states[0]: "},
	{"a token of no page of jobs", "ListJobs", &remudav1.ListJobsRequest{Service: "render", PageToken: "x"}, codes.InvalidArgument, "page_token: not a page token of this listing"},
	{"a token of no page", "ListWorkers", &remudav1.ListWorkersRequest{Service: "render", PageToken: "x"}, codes.InvalidArgument, "page_token: not a page token of this listing"},
}

// TestErrorsOfWorkers are the same by gRPC and in JSON.
func TestErrorsOfWorkers(t *testing.T) {
	w := newWorldOf(t, server.Callers{Workers: workerTokens()})
	ctx := as(t.Context(), renderToken)
	workers := remudav1.NewWorkerServiceClient(w.conn)
	_, submit := workers.SubmitJob(ctx, &remudav1.SubmitJobRequest{Service: "render", JobId: "taken", Payload: []byte("x")})
	_, claim := workers.ClaimJob(ctx, &remudav1.ClaimJobRequest{Service: "render", WorkerId: "w"})
	if err := errors.Join(submit, claim); err != nil {
		t.Fatal(err)
	}
	who, err := w.server.Workers().Caller(renderToken)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range workerErrors {
		t.Run(test.name, func(t *testing.T) {
			err := w.conn.Invoke(ctx, "/remuda.v1.WorkerService/"+test.call, test.req, &remudav1.SubmitJobResponse{})
			if status.Code(err) != test.code || !strings.Contains(status.Convert(err).Message(), test.want) {
				t.Errorf("gRPC: got %v, want %s: %s", err, test.code, test.want)
			}
			_, inJSON := w.server.Workers().Call(t.Context(), who, test.call, nil, asJSON(t, test.req))
			if status.Code(inJSON) != test.code || status.Convert(inJSON).Message() != status.Convert(err).Message() {
				t.Errorf("JSON: got %v, want %v", inJSON, err)
			}
		})
	}
}

// TestWhoMayCallWorkers: workers and operators, and workers nothing else.
func TestWhoMayCallWorkers(t *testing.T) {
	broken := func() ([]lifecycle.Secret, error) { return nil, errors.New("disk gone") }
	for name, test := range map[string]struct {
		tokens server.WorkerTokens
		header []string
		code   codes.Code
		want   string
	}{
		"no token, on this machine": {workerTokens(), nil, codes.OK, ""},
		"its token":                 {workerTokens(), []string{"Bearer " + renderToken}, codes.OK, ""},
		"an older one":              {workerTokens(), []string{"bearer an older token of the workers of render"}, codes.OK, ""},
		"another's":                 {workerTokens(), []string{"Bearer " + archiveToken}, codes.PermissionDenied, "the token is that of a worker of archive"},
		"a wrong one":               {workerTokens(), []string{"Bearer " + renderToken + "x"}, codes.Unauthenticated, "the token is not the worker token of a service"},
		"the beginning":             {workerTokens(), []string{"Bearer " + renderToken[1:]}, codes.Unauthenticated, "the token is not the worker token of a service"},
		"two":                       {workerTokens(), []string{"Bearer " + renderToken, "Bearer x"}, codes.Unauthenticated, "not one bearer token"},
		"no bearer":                 {workerTokens(), []string{"Basic " + renderToken}, codes.Unauthenticated, "not one bearer token"},
		"where there are none":      {nil, []string{"Bearer " + renderToken}, codes.Unauthenticated, "the token is not the worker token of a service"},
		"another's file is broken":  {server.WorkerTokens{"render": fixed(renderToken), "archive": broken}, []string{"Bearer " + renderToken}, codes.OK, ""},
		"its file is broken":        {server.WorkerTokens{"render": broken}, []string{"Bearer " + renderToken}, codes.Unavailable, "the worker tokens cannot be read now"},
		"one token of two services": {server.WorkerTokens{"render": fixed(renderToken), "archive": fixed(renderToken)}, []string{"Bearer " + renderToken}, codes.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, server.Callers{Workers: test.tokens})
			ctx := t.Context()
			for _, header := range test.header {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", header)
			}
			_, err := remudav1.NewWorkerServiceClient(w.conn).Heartbeat(ctx, &remudav1.HeartbeatRequest{Service: "render", WorkerId: "w"})
			if status.Code(err) != test.code || !strings.Contains(status.Convert(err).Message(), test.want) {
				t.Errorf("got %v, want %s: %s", err, test.code, test.want)
			}
			if strings.Contains(w.log.String(), renderToken) || strings.Contains(w.log.String(), archiveToken) {
				t.Errorf("the log tells a token:\n%s", w.log)
			}
			if broken := strings.Contains(name, "file is broken"); strings.Contains(w.log.String(), "cannot read worker tokens") != broken {
				t.Errorf("a file is broken: %t; the log is\n%s", broken, w.log)
			}
		})
	}
	t.Run("a worker and the fleet", func(t *testing.T) {
		w := newWorldOf(t, server.Callers{Workers: workerTokens()})
		_, err := w.ListPools(as(t.Context(), renderToken), &remudav1.ListPoolsRequest{})
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("got %v", err)
		}
	})
}

// TestRolesOfWorkerCalls: who reads needs to be a viewer, who changes an operator.
func TestRolesOfWorkerCalls(t *testing.T) {
	ours := newAuthority(t, "ours")
	cert, key := ours.issue("controld")
	config, err := server.LoadTLS(cert, key, ours.file)
	if err != nil {
		t.Fatal(err)
	}
	addr := serveTLS(t, config, server.Callers{Operators: operators, Workers: workerTokens()})
	for _, m := range remudav1.WorkerService_ServiceDesc.Methods {
		need := policy.RoleOperator
		if strings.HasPrefix(m.MethodName, "Get") || strings.HasPrefix(m.MethodName, "List") {
			need = policy.RoleViewer
		}
		method := "/remuda.v1.WorkerService/" + m.MethodName
		for _, role := range policy.Roles {
			err := dial(t, addr, ours.client(ours, string(role))).Invoke(t.Context(), method, &remudav1.GetJobRequest{}, &remudav1.GetJobResponse{})
			if passed(err) != role.Includes(need) {
				t.Errorf("%s by a %s: got %v", m.MethodName, role, err)
			}
		}
		anonymous := dial(t, addr, ours.client(nil, ""))
		if err := anonymous.Invoke(t.Context(), method, &remudav1.GetJobRequest{}, &remudav1.GetJobResponse{}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s by an anonymous caller: got %v", m.MethodName, err)
		}
		if err := anonymous.Invoke(as(t.Context(), renderToken), method, &remudav1.GetJobRequest{}, &remudav1.GetJobResponse{}); !passed(err) {
			t.Errorf("%s by a worker: got %v", m.MethodName, err)
		}
	}
}

func TestWorkersInJSON(t *testing.T) {
	w := newWorldOf(t, server.Callers{Workers: server.WorkerTokens{
		"render": fixed(renderToken, archiveToken), "archive": fixed(archiveToken),
	}})
	type fields = map[string]string
	tests := []struct {
		name, token, call string
		fields            fields
		body              string
		want              string // in the answer or the error
	}{
		{"its service is known", renderToken, "SubmitJob", nil, `{"job_id":"a","payload":"AQI="}`, `"service":"render"`},
		{"in camel case", renderToken, "SubmitJob", nil, `{"jobId":"b"}`, `"state":"WORKER_JOB_STATE_WAITING"`},
		{"of two, it has to be said", archiveToken, "SubmitJob", nil, `{"job_id":"c"}`, "service: the token is that of a worker of archive and render: name one of them"},
		{"one of two", archiveToken, "SubmitJob", nil, `{"job_id":"c","service":"archive"}`, `"service":"archive"`},
		{"an id of its own", renderToken, "SubmitJob", nil, `{}`, `"job_id":"`},
		{"by the path", renderToken, "GetJob", fields{"job_id": "a"}, `{}`, `"payload":"AQI="`},
		{"by path and body", renderToken, "GetJob", fields{"job_id": "a"}, `{"job_id":"a"}`, `"attempt":0`},
		{"path and body differ", renderToken, "GetJob", fields{"job_id": "a"}, `{"job_id":"b"}`, "job_id: is not the one of the path"},
		{"no job", renderToken, "ClaimJob", nil, `{"service":"render","worker_id":"w"}`, `"worker_id":"w"`},
		{"numbers in a query", renderToken, "ListWorkers", nil, `{"page_size":"5"}`, `"online":true`},
		{"unknown field", renderToken, "GetJob", fields{"job_id": "a"}, `{"colour":"red"}`, `unknown field "colour"`},
		{"no JSON", renderToken, "SubmitJob", nil, `do it`, "the body is not JSON of SubmitJobRequest: syntax error"},
		{"a list", renderToken, "SubmitJob", nil, `[]`, "the body is not JSON of SubmitJobRequest"},
		{"another service", renderToken, "Heartbeat", nil, `{"service":"archive","worker_id":"w"}`, "PermissionDenied"},
		{"unknown call", renderToken, "Provision", nil, `{}`, "Unimplemented"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			who, err := w.server.Workers().Caller(test.token)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := w.server.Workers().Call(t.Context(), who, test.call, test.fields, []byte(test.body))
			// protojson puts blanks where it likes.
			if got := strings.ReplaceAll(string(answer), ": ", ":") + fmt.Sprint(err); !strings.Contains(strings.ReplaceAll(got, `", "`, `","`), test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	if _, err := w.server.Workers().Caller("x"); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a wrong token: got %v", err)
	}
	if n := w.counts.of("/remuda.v1.WorkerService/SubmitJob", codes.OK); n != 4 {
		t.Errorf("%d calls were counted, want 4", n)
	}
}

func TestTokenFile(t *testing.T) {
	long := strings.Repeat("x", 32)
	for name, test := range map[string]struct {
		text string
		n    int
		want string
	}{
		"one":          {long, 1, ""},
		"two":          {long + "\n\n " + long + "y \r\n", 2, ""},
		"short":        {long + "\n" + long[1:] + "\n", 0, "has a token of 31 bytes in line 2; write at least 32"},
		"none":         {"\n\n", 0, "holds no token"},
		"too many":     {strings.Repeat(long+"\n", 17), 0, "holds 17 tokens; write at most 16"},
		"a large file": {strings.Repeat(long, 1000), 0, "is larger than 16384 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tokens")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			tokens, err := server.TokenFile(path)()
			if len(tokens) != test.n || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), path+" "+test.want) {
				t.Errorf("got %d tokens and error %v; want %d, %q", len(tokens), err, test.n, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "xxx") {
				t.Errorf("%v tells a token", err)
			}
		})
	}
	// What is written is good at the next call.
	path := filepath.Join(t.TempDir(), "tokens")
	source := server.TokenFile(path)
	if _, err := source(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got error %v", err)
	}
	if err := os.WriteFile(path, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	if tokens, err := source(); err != nil || len(tokens) != 1 {
		t.Errorf("got %d tokens and error %v", len(tokens), err)
	}
}

func asJSON(t *testing.T, m proto.Message) []byte {
	t.Helper()
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
