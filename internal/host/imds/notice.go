package imds

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/aws"
)

// NoticeInterval is between looks for a notice: that of an interruption comes
// two minutes before the end at best, and every 5 s is what the EC2 User Guide
// recommends for both ("Spot Instance interruption notices", "EC2 instance
// rebalance recommendations"). A look costs nothing.
const NoticeInterval = 5 * time.Second

// action is the notice of the path spot/instance-action. What EC2 will do is
// terminate, stop or hibernate: the host is lost to its run in any case.
type action struct {
	Action string    `json:"action"`
	Time   time.Time `json:"time"`
}

// Interruption is when EC2 will take this instance, by its own notice; zero if
// there is none.
func Interruption(ctx context.Context, client *sdk.Client) (time.Time, error) {
	var a action
	err := notice(ctx, client, "look for an interruption notice", "spot/instance-action", &a)
	return a.Time, err
}

// recommendation is the notice of the path events/recommendations/rebalance.
type recommendation struct {
	NoticeTime time.Time `json:"noticeTime"`
}

// Rebalance is when EC2 recommended to leave this instance; zero if it never
// did. It is no interruption: it says only that the risk has grown, and most
// such instances go on to work for hours.
func Rebalance(ctx context.Context, client *sdk.Client) (time.Time, error) {
	var r recommendation
	err := notice(ctx, client, "look for a rebalance recommendation", "events/recommendations/rebalance", &r)
	return r.NoticeTime, err
}

// notice reads the one at a path; it leaves alone what it is read into if there
// is none.
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

// Watch looks for an interruption notice at every interval, first at once, and
// tells when EC2 will take this instance, each time that it learns something
// new. It returns when ctx is done. A service that does not answer is asked
// again; that it is silent is no notice.
func Watch(ctx context.Context, client *sdk.Client, interval time.Duration, log hclog.Logger, tell func(at time.Time)) {
	watcher{client: client, look: Interruption, says: "EC2 will take this machine", log: log, tell: tell}.run(ctx, interval)
}

// WatchRebalance is Watch for a rebalance recommendation: it tells when that was
// made.
func WatchRebalance(ctx context.Context, client *sdk.Client, interval time.Duration, log hclog.Logger, tell func(at time.Time)) {
	watcher{client: client, look: Rebalance, says: "EC2 recommends to leave this machine", log: log, tell: tell}.run(ctx, interval)
}

// watcher looks for one kind of notice.
type watcher struct {
	client *sdk.Client
	look   func(context.Context, *sdk.Client) (time.Time, error)
	says   string
	log    hclog.Logger
	tell   func(at time.Time)
}

func (w watcher) run(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var told time.Time
	silent := false
	for ctx.Err() == nil {
		at, err := w.look(ctx, w.client)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !silent:
			w.log.Warn("instance metadata does not answer", "error", err)
		case !at.IsZero() && !at.Equal(told):
			w.log.Warn(w.says, "at", at)
			told = at
			w.tell(at)
		}
		silent = err != nil
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
