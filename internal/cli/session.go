package cli

import (
	"cmp"
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/cli/connect"
	"github.com/remuda-ci/remuda/internal/cli/contexts"
	"github.com/remuda-ci/remuda/internal/cli/failure"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// session is a connection of one command.
type session struct {
	app    *App
	target connect.Target
	conn   *grpc.ClientConn // nil: the answers come from a snapshot
	fleet  remudav1.FleetServiceClient
	// poolKnown: the pool of the command's filter is configured. It is looked up once, if nothing was found of it.
	poolKnown bool
}

// target is the controld that the flags, or else the contexts, name. An address alone is called without what a context
// would show, so that no certificate or token goes to a server that it is not meant for.
func (a *App) target() (connect.Target, error) {
	if a.Address != "" && a.Context == "" {
		address, err := connect.WithPort(a.Address)
		if err != nil {
			return connect.Target{}, failure.Misused("--address: %v", err)
		}
		return connect.Target{Address: address}, nil
	}
	_, file, err := a.contextsFile()
	if err != nil {
		return connect.Target{}, err
	}
	return a.targetOf(file)
}

func (a *App) targetOf(file contexts.File) (connect.Target, error) {
	found, any, err := file.Find(a.Context)
	switch {
	case err != nil:
		return connect.Target{}, err
	case !any:
		return connect.Target{Address: connect.DefaultAddress}, nil
	case a.Address == "":
		return found.Target, nil
	}
	if found.Address, err = connect.WithPort(a.Address); err != nil {
		return connect.Target{}, failure.Misused("--address: %v", err)
	}
	return found.Target, nil
}

// open is a session with the controld of the flags. Nothing is sent before its first call.
func (a *App) open() (*session, error) {
	if a.Snapshot != "" {
		return a.openSnapshot()
	}
	target, err := a.target()
	if err != nil {
		return nil, err
	}
	return a.openTarget(target)
}

func (a *App) openTarget(target connect.Target) (*session, error) {
	conn, err := target.Open()
	if err != nil {
		return nil, failure.Of("connect to "+target.Address, err)
	}
	return &session{app: a, target: target, conn: conn, fleet: remudav1.NewFleetServiceClient(conn)}, nil
}

func (s *session) close() {
	if s.conn != nil { // a snapshot has none
		_ = s.conn.Close() // closing twice is its only error
	}
}

// bound is a context for a call that takes as long as usual, unless the flags say otherwise.
func (s *session) bound(ctx context.Context, usual time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(s.app.Timeout, usual))
}

// failed is the error of a call. When there was no connection it is looked at once more, since gRPC has only a text for
// it; if it works by now, the error is that of the call.
func (s *session) failed(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if s.conn == nil {
		return failedOffline(doing, err)
	}
	if ctx.Err() == nil && status.Code(err) == codes.Unavailable && !hasDetails(err) {
		if _, why := s.target.Probe(ctx); why != nil {
			var known *failure.Error
			if errors.As(why, &known) {
				return &failure.Error{Code: known.Code, Doing: doing + ": " + known.Doing, Err: known.Err, Remedy: known.Remedy}
			}
		}
	}
	return failure.FromStatus(doing, err)
}

// hasDetails reports whether controld itself answered: its UNAVAILABLE says when to try again.
func hasDetails(err error) bool { return len(status.Convert(err).Details()) > 0 }

// call makes one call within the time that is usual for it.
func call[Req, Resp any](
	ctx context.Context, s *session, usual time.Duration, doing string,
	method func(context.Context, *Req, ...grpc.CallOption) (*Resp, error), req *Req,
) (*Resp, error) {
	bounded, cancel := s.bound(ctx, usual)
	defer cancel()
	resp, err := method(bounded, req)
	return resp, s.failed(ctx, doing, err)
}

// pageSize is the most that the contract allows: a fleet of 10,000 hosts is ten calls.
const pageSize = 1000

// hosts lists all pages.
func (s *session) hosts(ctx context.Context, req *remudav1.ListInstancesRequest) ([]*remudav1.Instance, error) {
	req.PageSize = pageSize
	var all []*remudav1.Instance
	for {
		resp, err := call(ctx, s, DefaultTimeout, "list hosts", s.fleet.ListInstances, req)
		if err != nil {
			return nil, err
		}
		all = append(all, resp.GetInstances()...)
		if req.PageToken = resp.GetNextPageToken(); req.PageToken == "" {
			return all, nil
		}
	}
}

// alive are the states of hosts that have not ended.
var alive = []remudav1.State{
	remudav1.State_STATE_CREATED, remudav1.State_STATE_RUNNING, remudav1.State_STATE_IDLE, remudav1.State_STATE_CLAIMED,
}
