package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/config/inventory"
)

// refusal is one way in which serve does not start.
type refusal struct {
	// key is what it is about.
	key string
	// with is what a smallest file has beside it, and value that of the key. A value of NOTHING leaves the key out.
	with, value string
	aws         bool
	says        string
}

const (
	withTLS  = "grpc: {tls: {cert_file: DIR/tls.pem, key_file: DIR/tls.key}}\n"
	withKeys = "github: {token_file: null, apps: [{app_id: 1, private_key_env: REMUDA_TEST_APP_KEY}]}\n"
	withPost = "services: {render: {region: eu-west-1, cluster: c, ecs_service: s, queue: {postgrest: {url: PLAIN, queued: jobs, busy: jobs}}}}\n"
)

// refusals are all of them, except those of the moment: see momentary.
var refusals = []refusal{
	{key: "grpc.tls.cert_file", with: withTLS, value: "DIR/none", says: "DIR/none does not exist; make it, or write another path"},
	{key: "grpc.tls.cert_file", with: withTLS, value: "DIR/none/tls.pem", says: "nor does the directory DIR/none"},
	{key: "grpc.tls.cert_file", with: withTLS, value: "DIR", says: "DIR is a directory"},
	{key: "grpc.tls.cert_file", with: withTLS, value: "DIR/empty", says: "DIR/empty is empty; write a certificate in PEM form into it"},
	{key: "grpc.tls.cert_file", with: withTLS, value: "DIR/token", says: "DIR/token holds no certificate"},
	{key: "grpc.tls.cert_file", with: withTLS, value: "DIR/tls.key", says: "DIR/tls.key holds a private key and no certificate; are cert_file and key_file exchanged?"},
	{key: "grpc.tls.cert_file", with: withTLS, value: "DIR/broken.pem", says: "DIR/broken.pem holds a certificate that cannot be read"},
	{key: "grpc.tls.key_file", with: withTLS, value: "DIR/none", says: "DIR/none does not exist"},
	{key: "grpc.tls.key_file", with: withTLS, value: "DIR/token", says: "DIR/token holds no private key"},
	{key: "grpc.tls.key_file", with: withTLS, value: "DIR/tls.pem", says: "DIR/tls.pem holds a certificate and no private key; are cert_file and key_file exchanged?"},
	{key: "grpc.tls.key_file", with: withTLS, value: "DIR/locked.key", says: "DIR/locked.key holds a key with a password"},
	{key: "grpc.tls.key_file", with: withTLS, value: "DIR/broken.key", says: "DIR/broken.key holds a key that cannot be read"},
	{key: "grpc.tls.key_file", with: withTLS, value: "DIR/other.key", says: "DIR/other.key is not the key of the first certificate in DIR/tls.pem"},
	{key: "grpc.tls.client_ca_file", with: withOperator, value: "DIR/none", says: "DIR/none does not exist"},
	{key: "grpc.tls.client_ca_file", with: withOperator, value: "DIR/tls.key", says: "DIR/tls.key holds a private key and no certificate"},
	{key: "grpc.tls.client_ca_file", with: withOperator, value: "DIR/broken.pem", says: "DIR/broken.pem: certificate 1 cannot be read"},

	{key: "store.sqlite.path", value: "DIR/none/remuda.db", says: "the directory DIR/none does not exist"},
	{key: "store.sqlite.path", value: "DIR", says: "DIR is not a file"},
	{key: "compute.process.directory", value: "DIR/token", says: "DIR/token is not a directory"},
	{key: "compute.process.agentd", value: "/none", says: "/none is not a program that can be run (no such file or directory)"},
	{key: "compute.process.agentd", value: "no-such-agentd", says: "no-such-agentd is not a program that can be run (executable file not found in $PATH)"},
	{key: "compute.process.agentd", value: "DIR/token", says: "DIR/token is not a program that can be run (permission denied)"},
	{key: "compute.process.runner", value: "/none", says: "/none holds no unpacked actions/runner: "},

	{key: "github.ca_file", with: "github: {url: \"https://ghes.acme.com/api/v3\"}\n", value: "DIR/none", says: "DIR/none does not exist"},
	{key: "github.ca_file", with: "github: {url: \"https://ghes.acme.com/api/v3\"}\n", value: "DIR/token", says: "DIR/token holds no certificate"},
	{key: "github.token_file", value: "DIR/none", says: "DIR/none does not exist"},
	{key: "github.token_file", value: "DIR/words", says: "DIR/words is empty or holds more than one word"},
	{key: "github.token_env", with: "github: {token_file: null}\n", value: "REMUDA_TEST_NO_SUCH_TOKEN", says: "the variable REMUDA_TEST_NO_SUCH_TOKEN is empty"},
	{key: "github.apps[].private_key_file", with: withApp, value: "DIR/none", says: "DIR/none does not exist"},
	{key: "github.apps[].private_key_file", with: withApp, value: "DIR/empty", says: "DIR/empty is empty"},
	{key: "github.apps[].private_key_file", with: withApp, value: "DIR/tls.key", says: "DIR/tls.key: App 1: the private key is not an RSA key in PEM form"},
	{key: "github.apps[].private_key_env", with: withKeys, value: "REMUDA_TEST_NO_SUCH_KEY", says: "the variable REMUDA_TEST_NO_SUCH_KEY is empty"},
	{key: "github.apps[].private_key_env", with: withKeys, value: "REMUDA_TEST_VALUE", says: "App 1: the private key is not an RSA key in PEM form"},

	{key: "webhooks.secret_file", with: withHooks, value: "DIR/none", says: "DIR/none does not exist"},
	{key: "webhooks.secret_file", with: withHooks, value: "DIR/empty", says: "DIR/empty holds no"},
	{key: "webhooks.secret_env", with: withHooks + "webhooks: {secret_file: null}\n", value: "REMUDA_TEST_NO_SUCH_SECRET", says: "the variable REMUDA_TEST_NO_SUCH_SECRET holds no"},

	{key: "pools.<name>.pre_runner", value: "DIR/none", says: "DIR/none does not exist"},
	{key: "pools.<name>.pre_runner", value: "DIR/empty", says: "DIR/empty is empty; write a script into it"},
	{key: "pools.<name>.pre_runner", value: "DIR/none", aws: true, says: "DIR/none does not exist"},
	{key: "pools.<name>.post_release", value: "DIR/none", aws: true, says: "DIR/none does not exist"},
	{key: "pools.<name>.post_release", value: "DIR/empty", aws: true, says: "DIR/empty is empty"},
	{key: "pools.<name>.pre_runner", value: "DIR/huge.sh", aws: true, says: "set up EC2: pool default: "},

	{key: "tracing.ca_file", with: withTracing, value: "DIR/none", says: "DIR/none does not exist"},
	{key: "tracing.ca_file", with: withTracing, value: "DIR/token", says: "DIR/token holds no"},
	{key: "tracing.headers_file", with: withTracing, value: "DIR/none", says: "DIR/none does not exist"},
	{key: "tracing.headers_file", with: withTracing, value: "DIR/token", says: "DIR/token has no header in line 1: write `name: value`"},
	{key: "page.token_file", value: "DIR/none", says: "DIR/none does not exist"},
	{key: "page.token_file", value: "DIR/token", says: "DIR/token has a token of 9 bytes in line 1"},
	{key: "page.oidc.session_key_file", with: withPeople, value: "DIR/none", says: "DIR/none does not exist"},
	{key: "page.oidc.session_key_file", with: withPeople, value: "DIR/token", says: "DIR/token has a session key of 9 bytes in line 1"},
	{key: "page.oidc.client_secret_file", with: withPeople, value: "DIR/none", says: "DIR/none does not exist"},
	{key: "page.oidc.client_secret_file", with: withPeople, value: "DIR/empty", says: "DIR/empty holds no client secret"},
	{key: "page.oidc.client_secret_file", with: withPeople, value: "DIR/two", says: "DIR/two holds 2 client secrets; write one"},
	{key: "services.<name>.worker_token_file", with: "services: {render: {}}\n", value: "DIR/none", says: "DIR/none does not exist"},
	{key: "services.<name>.worker_token_file", with: "services: {render: {}}\n", value: "DIR/token", says: "DIR/token has a token of 9 bytes in line 1"},
	{key: "services.<name>.nudge_token_file", with: withService, value: "DIR/none", says: "DIR/none does not exist"},
	{key: "services.<name>.queue.postgrest.token_file", with: withPost, value: "DIR/none", says: "DIR/none does not exist"},
	{key: "services.<name>.queue.postgrest.token_file", with: withPost, value: "DIR/two", says: "DIR/two does not hold one token in one line"},

	{key: "aws.region", value: "NOTHING", aws: true, says: "aws: set up the AWS SDK: no region"},
}

// momentary are the ways in which serve does not start that config check does not look for, with the reason.
var momentary = map[string]string{
	"grpc.addr":            "a port that is in use is in use by the controld beside which the check runs",
	"http.addr":            "the same",
	"aws.instance_profile": "it is asked for in the account, which config check does with --aws",
	"the database":         "whether SQLite can open it, another process may change at any time",
}

// TestConfigCheckIsAsStrictAsServe: with each of them config check says what serve says.
func TestConfigCheckIsAsStrictAsServe(t *testing.T) {
	b := newBench(t)
	b.breakFiles()
	tested := map[string]bool{}
	for _, r := range refusals {
		tested[r.key] = true
		t.Run(r.key+" "+r.value, func(t *testing.T) {
			if r.key == "aws.region" { // from nowhere else either
				for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
					t.Setenv(name, "")
				}
			}
			served, checked, path := b.bothOf(t, r)
			says := b.places(r.says)
			if served.code != exitConfiguration || !strings.Contains(served.stderr, says) {
				t.Errorf("serve ends with %d and says %q, want 78 and %q", served.code, served.stderr, says)
			}
			sentence := strings.TrimPrefix(served.stderr, "controld: ")
			if placed, ok := strings.CutPrefix(sentence, "the configuration is wrong:\n"); ok {
				sentence = placed
			} else {
				sentence = path + ": " + sentence
			}
			if checked.code != exitFailure || checked.stdout != sentence {
				t.Errorf("config check ends with %d and says\n%s%s\nwant\n%s", checked.code, checked.stdout, checked.stderr, sentence)
			}
		})
	}
	for _, key := range inventory.Keys() {
		file := strings.HasSuffix(key.Path, "_file") || strings.HasSuffix(key.Path, "_env") || slices.Contains([]string{
			"store.sqlite.path", "compute.process.directory", "compute.process.agentd", "compute.process.runner", "pools.<name>.pre_runner", "pools.<name>.post_release",
		}, key.Path)
		if file && !tested[key.Path] {
			t.Errorf("%s names something outside the file, and no row has it wrong", key.Path)
		}
	}
}

// TestEverythingWrongIsSaidAtOnce: what is wrong in the file and in what it names, each with its line and column.
func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.dir, "controld.yaml")
	text := b.places(`grpc: {addr: "127.0.0.1:0", tls: {cert_file: DIR/none.crt, key_file: DIR/none.key}}
store: {sqlite: {path: DIR/remuda.db}}
compute: {process: {directory: DIR/hosts, runner: DIR, agentd: /none}}
github: {token_file: DIR/none}
pools: {default: {reuze: none, pre_runner: DIR/none.sh}}
webhooks: {secret_file: relative}
`)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := controld(t, "config", "check", path)
	for _, part := range []string{
		":1:35: grpc.tls.cert_file: " + b.dir + "/none.crt does not exist", ":3:", ": compute.process.agentd: /none is not a program", ":4:10: github.token_file: ", ":5:19: pools.default.reuze: is not known; did you mean reuse?",
		": pools.default.pre_runner: ", ":6:12: webhooks.secret_file: is \"relative\"; write an absolute path",
	} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("it does not say %q", part)
		}
	}
	if n := strings.Count(got.stdout, "\n"); n != 7 || got.code != exitFailure {
		t.Errorf("%d lines, want 7, and exit code %d:\n%s", n, got.code, got.stdout)
	}
}

// bothOf is what serve and config check say of a file.
func (b *bench) bothOf(t *testing.T, r refusal) (served, checked result, path string) {
	t.Helper()
	smallest := smallestLocal
	if r.aws {
		smallest = smallestAWS
	}
	over := append([]string{smallest}, strings.SplitAfter(r.with, "\n")...)
	value := r.value
	if value == "NOTHING" {
		value = "null"
	}
	text := b.file("", append(over, keyRow{key: r.key, value: value}.text())...)
	path = filepath.Join(t.TempDir(), "controld.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return controld(t, "serve", "--config", path), controld(t, "config", "check", path), path
}

// breakFiles writes files that are not what they should be.
func (b *bench) breakFiles() {
	b.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		b.t.Fatal(err)
	}
	random := make([]string, 2000) // it is not made smaller by compression
	for i := range random {
		random[i] = rand.Text()
	}
	of := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	for name, text := range map[string]string{
		"empty": "", "words": "two words\n", "two": "one\ntwo\n", "other.key": of("EC PRIVATE KEY", der), "broken.pem": of("CERTIFICATE", []byte("x")),
		"broken.key": of("PRIVATE KEY", []byte("x")), "locked.key": of("ENCRYPTED PRIVATE KEY", []byte("x")), "huge.sh": "#!/bin/sh\n" + strings.Join(random, "\n"),
	} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

// refusing are the functions that make an error of the configuration, and why config check has it too.
var refusing = map[string]string{
	"wrongConfig":    "it is for what inputs.Load returns, which both call",
	"newHub":         "rehearse calls it",
	"fleetOptions":   "rehearse calls it",
	"scaleDown":      "rehearse calls it",
	"newScaler":      "rehearse calls it",
	"loadAWS":        "rehearse calls it",
	"idleBackends":   "it is config check's own",
	"newAWSBackends": "rehearse makes the same EC2 adapter",
	"hostRoleID":     "config check --aws asks the account too",
	"sendWebhooks":   "it is dev's",
	"iamPolicy":      "another command", "takeSnapshot": "another command",
}

// TestServeRefusesNowhereElse: an error of the configuration is made only where config check comes by, and what a
// configuration names is read in package inputs alone.
func TestServeRefusesNowhereElse(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	commands := []string{"configcheck.go", "plan.go", "main.go", "iam.go"} // they read files of their own
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					if of, ok := n.Type.(*ast.Ident); ok && of.Name == "configError" {
						if found[f.Name.Name] = true; refusing[f.Name.Name] == "" {
							t.Errorf("%s: %s refuses a configuration: does config check?", name, f.Name.Name)
						}
					}
				case *ast.SelectorExpr:
					if of, ok := n.X.(*ast.Ident); ok && of.Name == "os" && !slices.Contains(commands, name) &&
						slices.Contains([]string{"Open", "OpenFile", "ReadFile", "Stat", "Lstat", "ReadDir", "Getenv", "LookupEnv"}, n.Sel.Name) {
						t.Errorf("%s: %s calls os.%s: read it in package inputs", name, f.Name.Name, n.Sel.Name)
					}
				}
				return true
			})
		}
	}
	for name := range refusing {
		if !found[name] {
			t.Errorf("%s makes no error of the configuration: take it off the list", name)
		}
	}
	for key, why := range momentary {
		if slices.ContainsFunc(refusals, func(r refusal) bool { return r.key == key }) || why == "" {
			t.Errorf("%s is of the moment, and has a row", key)
		}
	}
}
