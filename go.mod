module github.com/remuda-ci/remuda

go 1.26.0

require (
	buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go v1.36.12-20260825204119-511051f7f437.1 // the types of the rules in our protos
	buf.build/go/protovalidate v1.4.0 // checks requests against the rules in their protos
	charm.land/bubbletea/v2 v2.1.1 // the live view of remuda top
	connectrpc.com/connect v1.21.1 // the reads over HTTP, as JSON and for browsers
	github.com/anishathalye/porcupine v1.3.1 // tests: is a history of claims linearizable
	github.com/aws/aws-sdk-go-v2 v1.47.7 // AWS (given)
	github.com/aws/aws-sdk-go-v2/config v1.33.15 // its region and credentials
	github.com/aws/aws-sdk-go-v2/credentials v1.20.15 // tests: the credentials that emulators take
	github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue v1.21.19 // rows to attributes and back
	github.com/aws/aws-sdk-go-v2/feature/ec2/imds v1.20.7 // the identity of a host
	github.com/aws/aws-sdk-go-v2/service/dynamodb v1.73.1 // the store
	github.com/aws/aws-sdk-go-v2/service/ec2 v1.344.1 // the hosts
	github.com/aws/aws-sdk-go-v2/service/ecs v1.104.1 // services of runners in containers
	github.com/aws/aws-sdk-go-v2/service/iam v1.64.8 // the role of the hosts
	github.com/aws/aws-sdk-go-v2/service/servicequotas v1.43.10 // config check: the quotas of vCPU
	github.com/aws/aws-sdk-go-v2/service/sqs v1.52.10 // the queues
	github.com/aws/aws-sdk-go-v2/service/sts v1.51.8 // the host key
	github.com/aws/smithy-go v1.28.8 // the errors and middleware of the SDK
	github.com/bradleyfalzon/ghinstallation/v2 v2.11.0 // tokens of a GitHub App; the last with go-github v62
	github.com/charmbracelet/x/ansi v0.11.9 // lines of remuda top, broken between words
	github.com/coreos/go-oidc/v3 v3.21.0 // ID tokens of workflows
	github.com/coreos/go-systemd/v22 v22.7.0 // the units of a host, and the agent's word to systemd (given)
	github.com/getkin/kin-openapi v0.152.0 // tests: GitHub's own description of its API
	github.com/go-json-experiment/json v1.27.2 // the fast decoder of encoding/json in Go 1.27, until that is our Go
	github.com/godbus/dbus/v5 v5.2.4 // the values of go-systemd's properties
	github.com/golang-jwt/jwt/v4 v4.5.2 // the claims of an App, which ghinstallation signs
	github.com/google/go-cmp v0.7.0 // tests: readable differences
	github.com/google/go-github/v62 v62.0.0 // the GitHub API (given)
	github.com/google/uuid v1.6.0 // delivery ids of the stand-in
	github.com/grafana/grafana-foundation-sdk/go v0.0.22 // tests: the schema of the dashboards
	github.com/hashicorp/go-hclog v1.6.3 // logs (given)
	github.com/mattn/go-isatty v0.0.24 // no colour where there is no terminal
	github.com/netresearch/go-cron v0.9.1 // cron expressions with seconds, L and names, read once into bits
	github.com/prometheus/client_golang v1.25.0 // metrics
	github.com/prometheus/procfs v0.22.0 // what /proc says of processes and sockets of a host
	github.com/rhysd/actionlint v1.7.12 // the stand-in reads workflow files with it
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // tests: the schema of the CloudWatch agent's configuration
	github.com/spf13/cobra v1.10.2 // the commands of remuda, their completion and man pages
	github.com/spf13/pflag v1.0.9 // the flags of cobra, to read them
	github.com/zitadel/oidc/v3 v3.52.0 // tests: a provider that people sign in to the page at
	go.yaml.in/yaml/v3 v3.0.6 // configuration, with the place of each value
	go.yaml.in/yaml/v4 v4.0.0-rc.3 // the positions that actionlint speaks in
	golang.org/x/net v0.60.0 // the proxies of agentd, the HTML of the documents, and in tests that of the page and the frames of HTTP/2
	golang.org/x/oauth2 v0.38.0 // the codes that sign people in to the page
	golang.org/x/sync v0.24.0 // one call at a time for a token
	golang.org/x/sys v0.49.0 // inotify, pidfds and file systems of a host
	golang.org/x/time v0.16.0 // pacing
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // the details of gRPC errors
	google.golang.org/grpc v1.85.0 // the service (given)
	google.golang.org/protobuf v1.36.12 // the service (given)
	modernc.org/sqlite v1.60.1 // the embedded store, without cgo
	pgregory.net/rapid v1.3.0 // tests: properties
)

require (
	go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc v0.72.0 // traces: calls that are taken
	go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp v0.72.0 // traces: calls to GitHub
	go.opentelemetry.io/otel v1.47.0 // traces
	go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc v1.47.0 // traces: what a collector takes
	go.opentelemetry.io/otel/sdk v1.47.0 // traces
	go.opentelemetry.io/otel/trace v1.47.0 // traces
)

require (
	cel.dev/cel-go v0.32.0 // indirect
	cel.dev/expr v0.25.3 // indirect
	github.com/antlr4-go/antlr/v4 v4.13.1 // indirect
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.10 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.10 // indirect
	github.com/aws/aws-sdk-go-v2/internal/v4a v1.5.10 // indirect
	github.com/aws/aws-sdk-go-v2/service/dynamodbstreams v1.46.6 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding v1.13.24 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/endpoint-discovery v1.13.10 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/presigned-url v1.14.10 // indirect
	github.com/aws/aws-sdk-go-v2/service/signin v1.12.3 // indirect
	github.com/aws/aws-sdk-go-v2/service/sso v1.39.3 // indirect
	github.com/aws/aws-sdk-go-v2/service/ssooidc v1.44.3 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/bmatcuk/doublestar/v4 v4.10.4 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/charmbracelet/colorprofile v0.4.3 // indirect
	github.com/charmbracelet/ultraviolet v0.0.0-20261008173134-6b8d4baf91b4 // indirect
	github.com/charmbracelet/x/term v0.2.2 // indirect
	github.com/charmbracelet/x/termios v0.1.1 // indirect
	github.com/charmbracelet/x/windows v0.2.2 // indirect
	github.com/clipperhouse/displaywidth v0.11.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.6 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/felixge/httpsnoop v1.1.0 // indirect
	github.com/go-chi/chi/v5 v5.5.0 // indirect
	github.com/go-jose/go-jose/v4 v4.1.9 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/go-openapi/jsonpointer v1.0.0 // indirect
	github.com/google/go-querystring v1.2.0 // indirect
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe // indirect
	github.com/gorilla/securecookie v1.1.2 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.30.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/lucasb-eyer/go-colorful v1.4.1 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-runewidth v0.0.30 // indirect
	github.com/mattn/go-shellwords v1.0.12 // indirect
	github.com/muesli/cancelreader v0.2.2 // indirect
	github.com/muhlemmer/gu v0.3.1 // indirect
	github.com/muhlemmer/httpforwarded v0.1.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/oasdiff/yaml v0.1.1 // indirect
	github.com/oasdiff/yaml3 v0.0.14 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/rs/cors v1.11.1 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/xo/terminfo v1.0.0 // indirect
	github.com/zitadel/schema v1.3.2 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	go.opentelemetry.io/proto/otlp v1.11.0 // indirect
	golang.org/x/exp v0.0.0-20260820142414-ca536658362e // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260928230214-8a89bd6388cc // indirect
	modernc.org/libc v1.79.0 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
