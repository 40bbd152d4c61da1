package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/remuda-ci/remuda/internal/cli"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	"github.com/remuda-ci/remuda/internal/cli/output"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/fleethold"
	pages "github.com/remuda-ci/remuda/internal/page"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/services"
	"github.com/remuda-ci/remuda/internal/store/memory"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// The hosts that the questions name: one serves run 41, the other has ended.
const (
	itsHost   = "i-0b22a22eec53b9321"
	endedHost = "i-0c53f1aa9be7d0d28"
)

// day is a controld at noon, with the fleet of aFleet and what the questions name, that answers by gRPC and by its page.
type day struct {
	t       *testing.T
	store   *memory.Store
	address string
	conn    *grpc.ClientConn
	page    *httptest.Server
}

// endable is a cloud whose machines can be ended.
type endable struct{ *machines }

func (endable) Terminate(context.Context, []string) error { return nil }

// removable is GitHub where runners can be deleted and tokens are given.
type removable struct{ *runners }

func (removable) DeleteRunner(context.Context, string, int64) error { return nil }

func (removable) RemoveToken(context.Context, string) (lifecycle.Registration, error) {
	return lifecycle.Registration{Kind: lifecycle.RegistrationToken, Secret: secret, ExpiresAt: noon.Add(time.Hour)}, nil
}

func newDay(t *testing.T) *day {
	t.Helper()
	o, cloud, hub := aFleet(t)
	d := &day{t: t, store: o.Store.(*memory.Store)}
	_, err := d.store.UpdateFleetHold(t.Context(), fleethold.Hold{Version: 1}) // no hold is in the way
	check(t, err)
	d.hosts(cloud, hub)
	o.Compute, o.GitHub = endable{cloud}, removable{hub}
	o.Services = &services.Options{Store: d.store, Services: map[string]services.Service{"render": {Name: "render"}}}
	f, err := fleet.New(o)
	check(t, err)
	options := server.Options{Fleet: f, Now: func() time.Time { return noon }}
	inService()(&options)
	s, err := server.New(options)
	check(t, err)
	d.address = listens(t, s)
	d.conn, err = grpc.NewClient(d.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(t, err)
	t.Cleanup(func() { _ = d.conn.Close() })
	page, err := pages.New(pages.Options{Fleet: remudav1.NewFleetServiceClient(s.Viewer("the page")), Version: "1.2.3", Now: options.Now})
	check(t, err)
	d.page = httptest.NewServer(page)
	t.Cleanup(d.page.Close)
	return d
}

// hosts are those that the questions name.
func (d *day) hosts(cloud *machines, hub *runners) {
	d.t.Helper()
	serves := host(itsHost, lifecycle.StateRunning, func(r *lifecycle.Record) {
		r.Repository, r.RunID, r.RequestID, r.Workflow, r.TrustKey, r.Uses, r.RunnerName = "acme/shop", "41", "request-41", "build", "acme/shop", 1, "remuda-1-"+itsHost
	})
	ended := host(endedHost, lifecycle.StateTerminated, func(r *lifecycle.Record) {
		r.Threshold, r.DueAt, r.ExpiresAt, r.Repository, r.RunID = time.Time{}, time.Time{}, noon.Add(time.Hour), "acme/shop", "40"
	})
	for _, r := range []lifecycle.Record{serves, ended} {
		check(d.t, d.store.CreateInstance(d.t.Context(), r))
	}
	cloud.all = append(cloud.all, lifecycle.Machine{InstanceID: itsHost, HostKey: itsHost, State: lifecycle.MachineRunning, Hardware: serves.Hardware})
	hub.all = append(hub.all, lifecycle.Runner{ID: 99, Name: serves.RunnerName, Online: true})
	check(d.t, d.store.ForHost(itsHost).PutReport(d.t.Context(), lifecycle.Report{HeartbeatAt: before(5 * time.Second), Assignment: 1, RunID: "41", Signal: lifecycle.SignalRegOK}))
	check(d.t, d.store.AddEvents(d.t.Context(), []lifecycle.Event{{
		At: before(10 * time.Minute), InstanceID: endedHost, Repository: "acme/shop", RunID: "40", Action: lifecycle.ActionTerminate,
		From: "running", To: "terminated", Reason: "EC2 took the machine back", Assignment: 1,
	}}))
}

// runs has a person run a command, who says yes to what it asks, and returns what is printed.
func (d *day) runs(line string) string {
	d.t.Helper()
	var stdout, stderr bytes.Buffer
	app := &cli.App{
		Stdin: strings.NewReader("y\n"), Stdout: &stdout, Stderr: &stderr, InTerminal: true, ErrTerminal: true, Getenv: func(string) string { return "" },
		Now: func() time.Time { return noon }, Globals: cli.Globals{Output: output.Table},
	}
	if code := run(d.t.Context(), app, append(wordsOf(line)[1:], "--address", d.address)); code != failure.OK {
		d.t.Errorf("%s: exit code %d: %s", line, code, &stderr)
	}
	return stdout.String()
}

// sees is what the page shows a browser on the machine of controld, as text.
func (d *day) sees(path string) string {
	d.t.Helper()
	got, err := d.page.Client().Get(d.page.URL + path)
	check(d.t, err)
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		d.t.Errorf("%s: status %d", path, got.StatusCode)
	}
	doc, err := html.Parse(got.Body)
	check(d.t, err)
	var texts []string
	for n := range doc.Descendants() {
		if n.Type == html.TextNode {
			texts = append(texts, strings.TrimSpace(n.Data))
		}
	}
	return strings.Join(texts, " ")
}

// asks has a person ask, and returns what the command says and what the page shows then.
func (d *day) asks(q question, a answer) (said, seen string) {
	d.t.Helper()
	if !d.streams(q.rpc) {
		return d.runs(q.command), d.sees(a.path)
	}
	input, _ := io.Pipe() // nothing is typed
	app, screen := person(input, d.address)
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*time.Minute)
	defer cancel()
	wait := func(shown <-chan struct{}) {
		select {
		case <-shown:
		case <-ctx.Done():
			d.t.Errorf("%s shows\n%s", q.command, screen)
		}
	}
	begun, told, code := screen.shows("TIME"), screen.shows(justNow), make(chan failure.Code)
	go func() { code <- run(ctx, app, append(wordsOf(q.command)[1:], "--address", d.address)) }()
	wait(begun)
	d.happens()
	wait(told)
	cancel()
	if got := <-code; got != failure.OK {
		d.t.Errorf("%s: exit code %d", q.command, got)
	}
	return screen.String(), d.sees(a.path)
}

// calls calls the RPC, and returns what it answers as JSON and what the page shows then.
func (d *day) calls(q question, a answer) (said, seen string) {
	d.t.Helper()
	method := remudav1.File_remuda_v1_fleet_service_proto.Services().Get(0).Methods().ByName(protoreflect.Name(q.rpc))
	if method == nil {
		d.t.Fatalf("there is no RPC %s", q.rpc)
	}
	if method.Input() != a.req.ProtoReflect().Descriptor() {
		d.t.Fatalf("%s is not called with %T", q.rpc, a.req)
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	check(d.t, err)
	resp, path := kind.New().Interface(), "/"+remudav1.FleetService_ServiceDesc.ServiceName+"/"+q.rpc
	if d.streams(q.rpc) {
		stream, err := d.conn.NewStream(d.t.Context(), &grpc.StreamDesc{ServerStreams: true}, path)
		check(d.t, err)
		check(d.t, errors.Join(stream.SendMsg(a.req), stream.CloseSend()))
		_, err = stream.Header() // it listens
		check(d.t, err)
		d.happens()
		check(d.t, stream.RecvMsg(resp))
	} else {
		check(d.t, d.conn.Invoke(d.t.Context(), path, a.req, resp))
	}
	text, err := protojson.Marshal(resp)
	check(d.t, err)
	var compact bytes.Buffer
	check(d.t, json.Compact(&compact, text))
	return compact.String(), d.sees(a.path)
}

// streams reports whether an RPC answers with a stream.
func (d *day) streams(rpc string) bool {
	return slices.ContainsFunc(remudav1.FleetService_ServiceDesc.Streams, func(s grpc.StreamDesc) bool { return s.StreamName == rpc })
}

// happens is an event of now.
func (d *day) happens() {
	d.t.Helper()
	check(d.t, d.store.AddEvents(d.t.Context(), []lifecycle.Event{{
		At: noon, InstanceID: itsHost, Repository: "acme/shop", RunID: "41", Action: lifecycle.ActionStartJob, Reason: justNow, Assignment: 1,
	}}))
}

// wordsOf are the words of a command line, in which some are quoted.
func wordsOf(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}
