package server_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// result is what came of a call, in a form that can be compared.
type result struct {
	Answer proto.Message
	Code   codes.Code
	Did    any
}

// run makes the call of a row in a world of its own, with this request.
func (row fieldRow) run(t *testing.T, req proto.Message) result {
	t.Helper()
	f := newFieldWorld(t)
	if row.prepare != nil {
		row.prepare(f)
	}
	method := methodOf(t, row.method)
	answer, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	f.must(err)
	r := result{Answer: answer.New().Interface()}
	if method.IsStreamingServer() {
		err = f.watch(req.(*remudav1.WatchFleetRequest), r.Answer)
	} else {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = f.conn.Invoke(ctx, fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()), req, r.Answer)
	}
	if r.Code = status.Code(err); err != nil {
		r.Answer = nil
	} else {
		row.simplify(r.Answer)
	}
	if row.seen != nil && err == nil {
		r.Did = row.seen(f)
	}
	return r
}

// watch opens a watch and returns the first event, of two runs.
func (f *fieldWorld) watch(req *remudav1.WatchFleetRequest, answer proto.Message) error {
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	stream, err := f.WatchFleet(ctx, req)
	f.must(err)
	if _, err := stream.Header(); err != nil {
		return err
	}
	f.must(f.store.AddEvents(ctx, []lifecycle.Event{{ID: "00", At: time.Now(), RunID: "8", Repository: repository, Action: lifecycle.ActionClaim}}))
	anEvent(f)
	return stream.RecvMsg(answer)
}

// simplify replaces what differs from run to run: the times of now, and what the row only counts.
func (row fieldRow) simplify(m proto.Message) {
	r := m.ProtoReflect()
	for _, name := range row.counted {
		field := r.Descriptor().Fields().ByName(name)
		if field.IsList() {
			list := r.Mutable(field).List()
			for i := range list.Len() {
				list.Set(i, list.NewElement())
			}
		} else if r.Has(field) {
			r.Set(field, r.NewField(field))
		}
	}
	if e, ok := m.(*remudav1.ExplainRunResponse); ok && len(e.GetSentences()) > 0 {
		e.Sentences = []string{"SENTENCES"}
	}
	walkMessages(r, func(m protoreflect.Message) {
		switch m := m.Interface().(type) {
		case *timestamppb.Timestamp:
			if d := time.Until(m.AsTime()); d < 48*time.Hour && d > -48*time.Hour {
				proto.Reset(m)
				proto.Merge(m, recently)
			}
		case *remudav1.WorkerJob:
			if m.GetAwaited() != "" {
				m.Awaited = "AWAITED"
			}
		}
	})
}

// walkMessages visits a message and all below it.
func walkMessages(m protoreflect.Message, visit func(protoreflect.Message)) {
	visit(m)
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range v.List().Len() {
				walkMessages(v.List().Get(i).Message(), visit)
			}
		default:
			walkMessages(v.Message(), visit)
		}
		return true
	})
}

// contractServices are those whose calls have rows.
var contractServices = []string{"remuda.v1.FleetService", "remuda.v1.WorkerService"}

func methodsOf(t *testing.T) map[string]protoreflect.MethodDescriptor {
	t.Helper()
	methods := map[string]protoreflect.MethodDescriptor{}
	for _, name := range contractServices {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			t.Fatal(err)
		}
		list := d.(protoreflect.ServiceDescriptor).Methods()
		for i := range list.Len() {
			methods[string(list.Get(i).Name())] = list.Get(i)
		}
	}
	return methods
}

func methodOf(t *testing.T, name string) protoreflect.MethodDescriptor {
	t.Helper()
	m := methodsOf(t)[name]
	if m == nil {
		t.Fatalf("there is no call %s", name)
	}
	return m
}

// TestEveryFieldOfTheContract: each field of a request changes what the call does, and each field of an answer is there with its value. A field
// without a row fails.
func TestEveryFieldOfTheContract(t *testing.T) {
	asked, answered := map[string]bool{}, map[string]bool{}
	for i, row := range slices.Concat(fieldRows, costRows, waitingRows, statusRows) {
		walkMessages(row.req.ProtoReflect(), noting(asked))
		if row.want != nil {
			walkMessages(row.want.ProtoReflect(), noting(answered))
		}
		t.Run(fmt.Sprint(i, " ", row.method), func(t *testing.T) {
			t.Parallel()
			row.check(t)
		})
	}
	for _, method := range methodsOf(t) {
		for _, field := range fieldsBelow(method.Input(), map[string]bool{}) {
			if !asked[field] {
				t.Errorf("no row sends %s", field)
			}
		}
		for _, field := range fieldsBelow(method.Output(), map[string]bool{}) {
			if !answered[field] {
				t.Errorf("no row has an answer with %s", field)
			}
		}
	}
}

func (row fieldRow) check(t *testing.T) {
	t.Helper()
	got := row.run(t, row.req)
	want := result{Answer: row.want, Did: row.did}
	if row.want == nil {
		got.Answer = nil // the row is about what the call did
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	row.req.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		without := proto.Clone(row.req)
		without.ProtoReflect().Clear(field)
		if other := row.run(t, without); cmp.Equal(got, other, protocmp.Transform()) {
			t.Errorf("%s changes nothing", field.FullName())
		}
		return true
	})
}

// noting notes the fields of a message that are there.
func noting(fields map[string]bool) func(protoreflect.Message) {
	return func(m protoreflect.Message) {
		m.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			fields[string(field.FullName())] = true
			return true
		})
	}
}

// fieldsBelow are the fields of a message of ours and of all below it.
func fieldsBelow(m protoreflect.MessageDescriptor, seen map[string]bool) []string {
	if m.ParentFile().Package() != "remuda.v1" {
		return nil
	}
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		if name := string(field.FullName()); !seen[name] {
			seen[name] = true
			if field.Message() != nil {
				fieldsBelow(field.Message(), seen)
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
