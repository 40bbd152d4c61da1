package server

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// watchEvery is how often a watcher reads what is new: one query each.
const watchEvery = 500 * time.Millisecond

// maxWatchers bounds the streams of one controld, and so what they read: 200 queries a second at the most.
const maxWatchers = 100

// WatchFleet streams what happens from now on, of one run or of all.
func (s *service) WatchFleet(req *remudav1.WatchFleetRequest, stream grpc.ServerStreamingServer[remudav1.WatchFleetResponse]) error {
	select {
	case s.watchers <- struct{}{}:
		defer func() { <-s.watchers }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d callers watch already; end one of them, or ask another controld", maxWatchers)
	}
	ctx := stream.Context()
	page, err := s.fleet.LastEvent(ctx)
	if err != nil {
		return s.toStatus(ctx, err)
	}
	// The header tells the caller that the watch has begun.
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		got, err := s.fleet.Events(ctx, page)
		if err != nil {
			return s.toStatus(ctx, err)
		}
		page.After = got.Next
		if err := s.send(stream, req.GetRunId(), got.Items); err != nil {
			return err
		}
		if len(got.Items) == page.Size() {
			continue // there is more
		}
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-s.stopping.Done():
			return status.Error(codes.Unavailable, "controld is stopping; watch again")
		case <-tick.C:
		}
	}
}

func (s *service) send(stream grpc.ServerStreamingServer[remudav1.WatchFleetResponse], runID string, events []lifecycle.Event) error {
	for _, e := range events {
		if runID != "" && e.RunID != runID {
			continue
		}
		if err := stream.Send(&remudav1.WatchFleetResponse{Event: event(e)}); err != nil {
			return err
		}
	}
	return nil
}
