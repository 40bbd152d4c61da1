package imds

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// NoticeInterval is between polls for a notice. An interruption notice comes at best two minutes before the
// end, and every 5 s is what the EC2 User Guide recommends for both ("Spot Instance interruption notices",
// "EC2 instance rebalance recommendations"). A poll costs nothing.
const NoticeInterval = 5 * time.Second

// Interruption returns when EC2 will reclaim this instance, by its notice; zero without one. What EC2 will do is
// terminate, stop or hibernate: the host is lost to its run in any case.
func Interruption(ctx context.Context, client *sdk.Client) (time.Time, error) {
	var action struct {
		Time time.Time `json:"time"`
	}
	err := notice(ctx, client, "look for an interruption notice", "spot/instance-action", &action)
	return action.Time, err
}

// Rebalance returns when EC2 recommended to leave this instance; zero if it never did. It is not an interruption:
// it only says that the risk has grown, and most such instances continue to work for hours.
func Rebalance(ctx context.Context, client *sdk.Client) (time.Time, error) {
	var recommendation struct {
		NoticeTime time.Time `json:"noticeTime"`
	}
	err := notice(ctx, client, "look for a rebalance recommendation", "events/recommendations/rebalance", &recommendation)
	return recommendation.NoticeTime, err
}

// notice reads the notice at a path. It does not touch its target if there is none.
func notice(ctx context.Context, client *sdk.Client, what, path string, into any) error {
	text, err := read(ctx, client, path)
	switch {
	case err != nil:
		return aws.Wrap(what, err)
	case text == "":
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Watch polls for an interruption notice at every interval, first at once, and calls tell with the time at
// which EC2 will reclaim this instance whenever that is new. It returns when ctx is done. A service that does
// not answer is asked again, and its silence is not a notice.
func Watch(ctx context.Context, client *sdk.Client, interval time.Duration, log hclog.Logger, tell func(at time.Time)) {
	watch(ctx, client, interval, log, Interruption, func(at time.Time) {
		log.Warn("EC2 will take this machine", logkey.At, at)
		tell(at)
	})
}

// WatchRebalance is Watch for a rebalance recommendation, with the time at which that was made.
func WatchRebalance(ctx context.Context, client *sdk.Client, interval time.Duration, log hclog.Logger, tell func(at time.Time)) {
	watch(ctx, client, interval, log, Rebalance, func(at time.Time) {
		log.Warn("EC2 recommends to leave this machine", logkey.At, at)
		tell(at)
	})
}

// watch polls for one kind of notice.
func watch(
	ctx context.Context, client *sdk.Client, interval time.Duration, log hclog.Logger,
	read func(context.Context, *sdk.Client) (time.Time, error), changed func(at time.Time),
) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last time.Time
	silent := false
	for ctx.Err() == nil {
		at, err := read(ctx, client)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !silent:
			log.Warn("instance metadata does not answer", logkey.Error, err)
		case !at.IsZero() && !at.Equal(last):
			last = at
			changed(at)
		}
		silent = err != nil
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
