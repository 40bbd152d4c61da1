package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/remuda-ci/remuda/internal/config"
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
	c, err := config.Load(path)
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
	d, err := newDaemon(ctx, c, newReplica(), call.stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	return d.serve(ctx, grpc, http, func() {
		fmt.Fprintf(call.stdout, "ready grpc=%s http=%s\n", grpc.Addr(), http.Addr())
		tellReady(ctx, grpc.Addr(), http.Addr(), d.log)
	})
}
