package main

import (
	"context"
	"fmt"
	"net"

	sdnotify "github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/logkey"
)

// tellReady notifies systemd (sd_notify(3), Type=notify) that callers can connect, and when
// ctx ends that controld stops. Without systemd it does nothing.
func tellReady(ctx context.Context, grpc, http net.Addr, log hclog.Logger) {
	tell(fmt.Sprintf("%s\nSTATUS=serving, grpc %s, http %s", sdnotify.SdNotifyReady, grpc, http), log)
	context.AfterFunc(ctx, func() { tell(sdnotify.SdNotifyStopping+"\nSTATUS=letting calls under way finish", log) })
}

func tell(state string, log hclog.Logger) {
	if _, err := sdnotify.SdNotify(false, state); err != nil {
		log.Warn("sd_notify failed", logkey.Error, err)
	}
}
