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

// NoticeInterval is between looks for an interruption notice: the notice comes
// two minutes before the end at best, and every 5 s is what the EC2 User Guide
// recommends ("Spot Instance interruption notices"). A look costs nothing.
const NoticeInterval = 5 * time.Second

// action is the notice of the path spot/instance-action. What EC2 will do is
// terminate, stop or hibernate: the host is lost to its run in any case.
type action struct {
	Action string    `json:"action"`
	Time   time.Time `json:"time"`
}

// Interruption is when EC2 will take this instance, by its own notice; zero if
// there is none. A rebalance recommendation is none: it says only that the risk
// has grown, and most such instances go on to work for hours.
func Interruption(ctx context.Context, client *sdk.Client) (time.Time, error) {
	const what = "look for an interruption notice"
	text, err := read(ctx, client, "spot/instance-action")
	if err != nil || text == "" {
		return time.Time{}, wrap(what, err)
	}
	var a action
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", what, err)
	}
	return a.Time, nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return aws.Wrap(what, err)
}

// Watch looks for an interruption notice at every interval, first at once, and
// tells when EC2 will take this instance, each time that it learns something
// new. It returns when ctx is done. A service that does not answer is asked
// again; that it is silent is no notice.
func Watch(ctx context.Context, client *sdk.Client, interval time.Duration, log hclog.Logger, tell func(at time.Time)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var told time.Time
	silent := false
	for ctx.Err() == nil {
		at, err := Interruption(ctx, client)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !silent:
			log.Warn("cannot look for an interruption notice", "error", err)
		case !at.IsZero() && !at.Equal(told):
			log.Warn("EC2 will take this machine", "at", at)
			told = at
			tell(at)
		}
		silent = err != nil
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
