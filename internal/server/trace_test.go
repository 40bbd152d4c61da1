package server_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/server"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// tracer notes what a handler of traces learns of calls.
type tracer struct {
	stats.Handler // not called for
	mu            sync.Mutex
	noted         []string
}

type tracedMethod struct{}

func (r *tracer) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted = append(r.noted, what)
}

func (r *tracer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (r *tracer) HandleConn(context.Context, stats.ConnStats)                       {}

func (r *tracer) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, tracedMethod{}, info.FullMethodName)
}

// HandleRPC notes beginnings and ends, with the method that TagRPC put into the context.
func (r *tracer) HandleRPC(ctx context.Context, s stats.RPCStats) {
	method, _ := ctx.Value(tracedMethod{}).(string)
	switch s := s.(type) {
	case *stats.Begin:
		if !s.BeginTime.IsZero() {
			r.note(method + " begins")
		}
	case *stats.End:
		if !s.BeginTime.After(s.EndTime) {
			r.note(method + " ends: " + status.Code(s.Error).String())
		}
	}
}

// A call in this process is traced as one that comes by the network.
func TestCallsAreTraced(t *testing.T) {
	const method = remudav1.FleetService_GetInstance_FullMethodName
	for name, conn := range map[string]func(w *world) grpc.ClientConnInterface{
		"by the network":  func(w *world) grpc.ClientConnInterface { return w.conn },
		"in this process": func(w *world) grpc.ClientConnInterface { return w.server.Viewer("the page") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				traces := &tracer{}
				w := newWorldServing(t, func(o *server.Options) { o.StatsHandler = traces })
				calls := remudav1.NewFleetServiceClient(conn(w))
				if _, err := calls.GetInstance(t.Context(), &remudav1.GetInstanceRequest{InstanceId: "i-none"}); status.Code(err) != codes.NotFound {
					t.Fatal(err)
				}
				if _, err := calls.GetInstance(t.Context(), &remudav1.GetInstanceRequest{InstanceId: w.hostOf(t, "1")}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				traces.mu.Lock()
				defer traces.mu.Unlock()
				got := slices.DeleteFunc(traces.noted, func(what string) bool { return what[:len(method)] != method }) // of those of hostOf
				if d := cmp.Diff([]string{method + " begins", method + " ends: NotFound", method + " begins", method + " ends: OK"}, got); d != "" {
					t.Errorf("traces (-want +got):\n%s", d)
				}
			})
		})
	}
}
