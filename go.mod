module github.com/remuda-ci/remuda

go 1.26.0

require (
	buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go v1.36.12-20260825204119-511051f7f437.1 // the types of the rules in our protos
	buf.build/go/protovalidate v1.4.0 // checks requests against the rules in their protos
	github.com/google/go-cmp v0.7.0 // tests: readable differences
	github.com/google/go-github/v62 v62.0.0 // the GitHub API (given)
	github.com/google/uuid v1.6.0 // delivery ids of the stand-in
	github.com/hashicorp/go-hclog v1.6.3 // logs (given)
	github.com/mattn/go-isatty v0.0.24 // no colour where there is no terminal
	github.com/prometheus/client_golang v1.25.0 // metrics
	github.com/rhysd/actionlint v1.7.12 // the stand-in reads workflow files with it
	go.yaml.in/yaml/v3 v3.0.6 // configuration, with the place of each value
	go.yaml.in/yaml/v4 v4.0.0-rc.3 // the positions that actionlint speaks in
	golang.org/x/sync v0.24.0 // one call at a time for a token
	golang.org/x/sys v0.49.0 // inotify, pidfds and file systems of a host
	golang.org/x/time v0.16.0 // pacing
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260819154853-08b0e4226688 // the details of gRPC errors
	google.golang.org/grpc v1.85.0 // the service (given)
	google.golang.org/protobuf v1.36.12 // the service (given)
	modernc.org/sqlite v1.60.1 // the embedded store, without cgo
	pgregory.net/rapid v1.3.0 // tests: properties
)

require (
	cel.dev/cel-go v0.32.0 // indirect
	cel.dev/expr v0.25.3 // indirect
	github.com/antlr4-go/antlr/v4 v4.13.1 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/bmatcuk/doublestar/v4 v4.10.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/google/go-querystring v1.1.0 // indirect
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-runewidth v0.0.21 // indirect
	github.com/mattn/go-shellwords v1.0.12 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	golang.org/x/exp v0.0.0-20260820142414-ca536658362e // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260819154853-08b0e4226688 // indirect
	modernc.org/libc v1.79.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
