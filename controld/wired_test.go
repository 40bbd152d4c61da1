package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/awstest"
	"github.com/remuda-ci/remuda/internal/compute/process"
	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/fleet"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/inputs"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/store/dynamo"
	"github.com/remuda-ci/remuda/internal/web"
)

// wired is a daemon that was made as serve makes it, and what its parts were made with.
type wired struct {
	t   *testing.T
	b   *bench
	c   *config.Config
	in  *inputs.Inputs
	d   *daemon
	log string

	fleet   fleet.Options
	server  server.Options
	web     web.Options
	github  github.Config
	process process.Options
	store   dynamo.Options // without an aws section this and aws are empty
	aws     awsOptions
}

// bench is where daemons are made: a directory with the files that configurations name, and an AWS that knows the hosts' instance profile and
// refuses everything else.
type bench struct {
	t   *testing.T
	dir string
	// hub has a certificate that the system does not trust. plain records what it is asked.
	hub, plain *httptest.Server
	proxy      *awstest.Proxy

	mu    sync.Mutex
	asked []string // requests to plain
	marks []string // bodies of those that update rows
	scope []string // service/region of the requests to AWS
	made  map[string]*wired
}

var signedFor = regexp.MustCompile(`Credential=[^/]+/[0-9]+/([^/]+)/([^/]+)/`)

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), made: map[string]*wired{}}
	b.serve()
	for _, variable := range b.proxy.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	key := appKeyPEM(t)
	t.Setenv("REMUDA_TEST_VALUE", "from-the-environment")
	t.Setenv("REMUDA_TEST_APP_KEY", key+"# environment\n")
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.hub.Certificate().Raw}))
	certificate, certificateKey := ownCertificate(t)
	for name, text := range map[string]string{
		"tls.pem": certificate, "tls.key": certificateKey,
		"token": "token-one", "token2": "token-two", "headers": "x-key: header-secret\n", "secret": "secret-number-one", "secret2": "secret-number-two", "app.pem": key, "app2.pem": key + "# two\n", "ca.pem": ca,
		"worker": workerToken, "nudge": nudgeToken, "before.sh": "#!/bin/sh\n: before\n", "after.sh": "#!/bin/sh\n: after\n", "config.sh": "", "runner2/config.sh": "",
	} {
		path := filepath.Join(b.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// ownCertificate is a certificate and its key, in PEM.
func ownCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
}

// serve starts the servers that daemons meet.
func (b *bench) serve() {
	b.hub = httptest.NewUnstartedServer(http.NotFoundHandler())
	b.hub.Config.ErrorLog = hclog.NewNullLogger().StandardLogger(nil)
	b.hub.StartTLS()
	b.plain = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked = append(b.asked, r.URL.RequestURI()+" "+r.Header.Get("Authorization"))
		if r.Method == http.MethodPatch {
			mark, _ := io.ReadAll(r.Body)
			b.marks = append(b.marks, string(mark))
		}
		if r.URL.Query().Has("select") { // stalled jobs
			fmt.Fprint(w, `[{"id": 7, "uuid": 7}]`)
			return
		}
		w.Header().Set("Content-Range", "*/0")
		if strings.HasSuffix(r.URL.Path, "/repos/actions/runner/releases") {
			fmt.Fprint(w, `[{"tag_name":"v2.330.0","published_at":"2026-01-01T00:00:00Z"}]`)
		}
	}))
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m := signedFor.FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.scope = append(b.scope, m[2]+" "+m[1])
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"__type":"AccessDeniedException","message":"not here"}`)
	}))
	for _, s := range []*httptest.Server{b.hub, b.plain, refusing} {
		b.t.Cleanup(s.Close)
	}
	b.proxy = awstest.NewProxy(b.t, refusing.URL)
	b.proxy.Handle("iam", "GetInstanceProfile", func(w http.ResponseWriter, _ *http.Request, _ func(*http.Request) *awstest.Answer) {
		fmt.Fprint(w, `<GetInstanceProfileResponse><GetInstanceProfileResult><InstanceProfile><Roles><member><RoleId>AROAEXAMPLE</RoleId></member></Roles></InstanceProfile></GetInstanceProfileResult></GetInstanceProfileResponse>`)
	})
}

// The smallest files: of a fleet on this machine, and of one in AWS. DIR stands for the directory of the bench.
const (
	common = `
grpc: {addr: "127.0.0.1:0"}
http: {addr: "127.0.0.1:0"}
github: {token_file: DIR/token, url: "http://127.0.0.1:1"}
`
	smallestLocal = common + `
store: {sqlite: {path: DIR/remuda.db}}
compute: {process: {directory: DIR/hosts, runner: DIR, agentd: /bin/true}}
`
	smallestAWS = common + `
aws:
  region: eu-west-1
  instance_profile: remuda-host
  ec2: {images: {x86_64: ami-11111111}, subnets: [subnet-11111111], security_groups: [sg-11111111]}
`
)

// file is the text of a file over a smallest one.
func (b *bench) file(smallest string, over ...string) string {
	b.t.Helper()
	whole := map[string]any{}
	for _, text := range append([]string{smallest}, over...) {
		part := map[string]any{}
		if err := yaml.Unmarshal([]byte(b.places(text)), &part); err != nil {
			b.t.Fatalf("%v in %s", err, text)
		}
		whole = merged(whole, part).(map[string]any)
	}
	text, err := yaml.Marshal(whole)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// places fills in where things are.
func (b *bench) places(text string) string {
	return strings.NewReplacer("DIR", b.dir, "PLAIN", b.plain.URL).Replace(text)
}

// merged is b over a: maps, and lists of one map, are merged; null removes.
func merged(a, b any) any {
	switch over := b.(type) {
	case map[string]any:
		base, ok := a.(map[string]any)
		if !ok {
			base = map[string]any{}
		}
		for key, value := range over {
			if value == nil {
				delete(base, key)
			} else {
				base[key] = merged(base[key], value)
			}
		}
		return base
	case []any:
		if base, ok := a.([]any); ok && len(base) == 1 && len(over) == 1 {
			return []any{merged(base[0], over[0])}
		}
	}
	return b
}

// make is the daemon of a file. Each file has one.
func (b *bench) make(text string) (*wired, error) {
	b.t.Helper()
	if w := b.made[text]; w != nil {
		return w, nil
	}
	in := &inputs.Inputs{}
	c, err := config.Parse("controld.yaml", []byte(text), in.Rule)
	if err != nil {
		return nil, err
	}
	w := &wired{t: b.t, b: b, c: c, in: in}
	var log bytes.Buffer
	if w.d, err = newDaemon(b.t.Context(), c, in, "replica", &log); err != nil {
		return nil, err
	}
	b.t.Cleanup(func() { _ = w.d.close() }) // nothing is kept
	w.log = log.String()
	w.fleet, err = w.d.fleetOptions(b.t.Context(), c, "replica")
	errs := []error{err}
	w.server, err = w.d.serverOptions(c, in)
	errs = append(errs, err)
	w.web, err = w.d.webOptions(c, in)
	errs = append(errs, err)
	w.github = githubOptions(c, in, w.d.presence.Count, w.d.log)
	if c.Backend() == config.BackendAWS {
		w.store = storeOptions(c, w.d.log)
		w.aws = newAWSOptions(c, in, "eu-west-1", "AROAEXAMPLE", w.d.log)
	} else {
		w.process = processOptions(c, w.d.log)
	}
	b.made[text] = w
	return w, errors.Join(errs...)
}

// refused is why serve does not start with a file.
func (b *bench) refused(text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, "controld.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	got := controld(b.t, "serve", "--config", path)
	if got.code == 0 {
		b.t.Error("serve came up")
	}
	return got.stderr
}

// taken is an address that nothing else can listen on.
func taken(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// agent is the configuration of the agent on a host of this machine.
func (w *wired) agent() agentSettings {
	w.t.Helper()
	text, err := w.process.AgentConfig(lifecycle.Machine{Pool: config.DefaultPool}, "/host")
	var s agentSettings
	if err = errors.Join(err, yaml.Unmarshal(text, &s)); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// trusts reports whether a client reaches the server whose certificate the system does not trust.
func (w *wired) trusts(transport http.RoundTripper) bool {
	w.t.Helper()
	client := &http.Client{Transport: transport}
	response, err := client.Get(w.b.hub.URL)
	if err == nil {
		_ = response.Body.Close()
	}
	return err == nil
}

// counted are the requests with which the jobs of the service render are counted.
func (w *wired) counted() []string {
	w.b.mu.Lock()
	w.b.asked = nil
	w.b.mu.Unlock()
	_, err := w.fleet.Services.Services["render"].Backlog.Count(w.t.Context(), "render")
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	if err != nil {
		return []string{err.Error()}
	}
	slices.Sort(w.b.asked)
	return w.b.asked
}

// stalled is the request with which the stalled jobs of the service render are listed.
func (w *wired) stalled() string {
	w.t.Helper()
	w.failStalled(0)
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	if len(w.b.asked) != 1 {
		return fmt.Sprint("asked ", w.b.asked)
	}
	return w.b.asked[0]
}

// marked is what is written into the rows of the stalled jobs of the service render.
func (w *wired) marked() string {
	w.t.Helper()
	w.failStalled(0)
	w.failStalled(time.Minute)
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	if len(w.b.marks) != 1 {
		return fmt.Sprint("marked ", w.b.marks)
	}
	return w.b.marks[0]
}

// failStalled looks for the stalled jobs of the service render, so long after a noon.
func (w *wired) failStalled(after time.Duration) {
	w.t.Helper()
	w.b.mu.Lock()
	w.b.asked, w.b.marks = nil, nil
	w.b.mu.Unlock()
	stalled := w.fleet.Services.Services["render"].Stalled
	if _, err := stalled.FailStalled(w.t.Context(), "render", time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(after), false); err != nil {
		w.t.Error(err)
	}
}

// described is what ECS is asked about the service render, and where.
func (w *wired) described() string { return w.describedOf("render") }

func (w *wired) describedOf(service string) string {
	before := len(w.b.proxy.Calls())
	w.fleet.Services.Scaler.Describe(w.t.Context(), []string{service})
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	calls := w.b.proxy.Calls()[before:]
	if len(calls) == 0 {
		return "no call"
	}
	return w.b.scope[len(w.b.scope)-1] + " " + string(calls[0].Body)
}

// ensured are the calls of a refresh that only looks.
func (w *wired) ensured() []string {
	before := len(w.b.proxy.Calls())
	_, _ = w.d.backends.ensure(w.t.Context(), true) // everything is refused
	var calls []string
	for _, call := range w.b.proxy.Calls()[before:] {
		body := string(call.Body)
		if form, err := url.ParseQuery(body); err == nil && strings.Contains(body, "Action=") {
			body = form.Encode()
		}
		calls = append(calls, call.Service+" "+call.Operation+" "+body)
	}
	return calls
}

// revealed are secrets in plain words.
func revealed(secrets []lifecycle.Secret, err error) string {
	var words []string
	for _, s := range secrets {
		words = append(words, s.Reveal())
	}
	return strings.Join(words, " ") + fmt.Sprint(err)
}

// token is GitHub's.
func (w *wired) token() string {
	if w.github.Token == nil {
		return "none"
	}
	token, err := w.github.Token(context.Background())
	return token.Reveal() + fmt.Sprint(err)
}
