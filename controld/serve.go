package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"

	sdnotify "github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// serve runs the daemon of a configuration. Its hosts outlive it: another replica, or the
// next start, continues with them.
func serve(ctx context.Context, call *call) (err error) {
	var path string
	if _, err := call.parse(0, func(f *flag.FlagSet) {
		f.StringVar(&path, "config", "", "the configuration `FILE`; see docs/configuration.md")
	}); err != nil {
		return err
	}
	if path == "" {
		return call.misused("--config is required")
	}
	c, in, err := inputs.Load(path)
	if err != nil {
		return wrongConfig(err)
	}
	grpc, err := listen("grpc.addr", c.GRPC.Addr)
	if err != nil {
		return err
	}
	defer grpc.Close()
	http, err := listen("http.addr", c.HTTP.Addr)
	if err != nil {
		return err
	}
	defer http.Close()
	d, err := newDaemon(ctx, c, in, newReplica(), call.stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	return d.serve(ctx, grpc, http, func() {
		fmt.Fprintf(call.stdout, "ready grpc=%s http=%s\n", grpc.Addr(), http.Addr())
		tellReady(ctx, grpc.Addr(), http.Addr(), d.log)
	})
}

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
