package server_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/policy"
	"github.com/remuda-ci/remuda/internal/server"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// byDefault leaves the times of the server at their defaults.
func byDefault(o *server.Options) { o.Patience, o.ReadyEvery = 0, 0 }

// soon is the most that a call with a patience of 5 s takes to say that a dependency is away: the last try comes at most 2 s later.
const soon = 7*time.Second + 100*time.Millisecond

// A call that has done nothing yet says after 5 s that a dependency is away.
func TestTheDefaultPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldServing(t, byDefault)
		if _, err := w.Provision(t.Context(), &remudav1.ProvisionRequest{Repository: repository, RunId: "1"}); err != nil {
			t.Fatal(err)
		}
		w.store.requestsFull.Store(true)
		began := time.Now()
		err := release(&remudav1.ReleaseRequest{Repository: repository, RunId: "1", Wait: true})(t.Context(), w)
		if took := time.Since(began); status.Code(err) != codes.Unavailable || took < 5*time.Second || took > soon {
			t.Errorf("after %s: %v, want UNAVAILABLE after 5 s", took, err)
		}
	})
}

// A refresh is an order that is not remembered, so it is not kept up for longer after it has begun.
func TestARefreshThatHasBegunIsGivenUpAsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldServing(t, byDefault)
		for _, run := range []string{"1", "2"} {
			if _, err := w.Provision(t.Context(), &remudav1.ProvisionRequest{Repository: repository, RunId: run}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(24 * time.Hour) // both hosts are to be ended
		w.store.fills.Store(true)
		began := time.Now()
		_, err := w.Refresh(t.Context(), &remudav1.RefreshRequest{})
		if took := time.Since(began); status.Code(err) != codes.Unavailable || took < 5*time.Second || took > soon {
			t.Errorf("after %s: %v, want UNAVAILABLE after 5 s", took, err)
		}
		if ended := w.hostsIn(t, lifecycle.StateTerminated); len(ended) != 1 {
			t.Errorf("%d hosts were ended, want 1", len(ended))
		}
	})
}

// unsure are tokens that cannot be checked before their caller gives up, or that are all of run 42.
type unsure struct{ away bool }

func (u unsure) Verify(ctx context.Context, raw string) (server.Token, error) {
	if u.away {
		<-ctx.Done()
		return server.Token{}, &lifecycle.UnavailableError{What: "ask the issuer", Err: ctx.Err()}
	}
	return server.Token{ID: raw, RunAttempt: 1, Origin: policy.Origin{Repository: repository, RepositoryID: 1, OwnerID: 7, RunID: "42", Event: "pull_request"}}, nil
}

// A caller learns within 10 s that it cannot be admitted for now, however long it would wait.
func TestAnIdentityProviderThatDoesNotAnswer(t *testing.T) {
	for name, away := range map[string]bool{"the issuer": true, "GitHub, about a fork": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldOf(t, server.Callers{
					Tokens: unsure{away}, Rules: policy.Rules{rule()}, Once: func(context.Context, string, string, time.Time) error { return nil },
					Fork: func(ctx context.Context, _, _ string) (policy.Fork, error) {
						<-ctx.Done()
						return policy.ForkUnknown, ctx.Err()
					},
				})
				began := time.Now()
				_, err := w.Provision(with(t.Context(), "Bearer x"), &remudav1.ProvisionRequest{Repository: repository, RunId: "42"})
				if took := time.Since(began); status.Code(err) != codes.Unavailable || took != 10*time.Second {
					t.Errorf("after %s: %v, want UNAVAILABLE after 10 s", took, err)
				}
			})
		})
	}
}

// What is needed to serve is looked at every 5 s.
func TestReadinessIsLookedAtEveryFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		newWorldServing(t, func(o *server.Options) {
			o.ReadyEvery = 0
			o.Ready = func(context.Context) error { looks++; return nil }
		})
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if looks != 3 {
			t.Errorf("%d looks in 11 s, want 3", looks)
		}
	})
}

// A look that takes longer than 5 s has found that we are not ready.
func TestASlowLookIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldServing(t, func(o *server.Options) {
			o.Ready = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		})
		time.Sleep(5*time.Second + time.Millisecond)
		if got := w.health(t); got != healthv1.HealthCheckResponse_NOT_SERVING {
			t.Errorf("after 5 s the health is %s", got)
		}
	})
}

// Who watches the health learns at once that the server stops.
func TestTheHealthOfAServerThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stream, err := healthv1.NewHealthClient(w.conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		wants := func(want healthv1.HealthCheckResponse_ServingStatus) {
			t.Helper()
			if got, err := stream.Recv(); err != nil || got.GetStatus() != want {
				t.Fatalf("got %v, %v, want %s", got, err, want)
			}
		}
		wants(healthv1.HealthCheckResponse_SERVING)
		synctest.Wait() // until the watch waits for a change
		began := time.Now()
		go w.stop()
		wants(healthv1.HealthCheckResponse_NOT_SERVING)
		if took := time.Since(began); took != 0 {
			t.Errorf("it learned that after %s", took)
		}
	})
}

// TestStopEndsStreamsOfGRPC: a client that watches the health, or holds the stream of the reflection open, keeps no server from its end.
func TestStopEndsStreamsOfGRPC(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, w *world) func() error{
		"health": func(t *testing.T, w *world) func() error {
			stream, err := healthv1.NewHealthClient(w.conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			return func() error { _, err := stream.Recv(); return err }
		},
		"reflection": func(t *testing.T, w *world) func() error {
			stream, err := reflectionv1.NewServerReflectionClient(w.conn).ServerReflectionInfo(t.Context())
			if err == nil {
				err = stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
			}
			if err != nil {
				t.Fatal(err)
			}
			return func() error { _, err := stream.Recv(); return err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				receive := open(t, w)
				if err := receive(); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				w.stop()
				if took := time.Since(began); took > 0 {
					t.Errorf("the server has stopped after %s", took)
				}
				err := receive()
				for err == nil { // the health says that it does not serve any more
					err = receive()
				}
				if status.Code(err) != codes.Unavailable {
					t.Errorf("the stream ended with %v", err)
				}
			})
		})
	}
}

// A call that goes on although it is handed over is cut off half a second later.
func TestACallThatDoesNotEndIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store.stuck.Store(true)
		answer := make(chan error, 1)
		go func() { answer <- getInstance("i-1")(t.Context(), w) }()
		synctest.Wait()
		began := time.Now()
		w.stopWithin(time.Second)
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("the server has stopped after %s, want 1.5 s", took)
		}
		if err := <-answer; status.Code(err) != codes.Unavailable {
			t.Errorf("the answer is %v, want UNAVAILABLE", err)
		}
	})
}
