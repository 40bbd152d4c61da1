package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
	"github.com/remuda-ci/remuda/internal/host"
)

// The smallest files, one for each kind of host. DIR stands for the directory of the bench.
const (
	withoutStore  = `{instance_id: i-1, directory: DIR/host, runner: {distribution: DIR/runner}}`
	processes     = `{instance_id: i-1, directory: DIR/host, runner: {distribution: DIR/runner}, store: {sqlite: {path: DIR/remuda.db}}}`
	inUnits       = `{instance_id: i-1, directory: DIR/host, runner: {distribution: DIR/runner}, store: {sqlite: {path: DIR/remuda.db}}, systemd: {}}`
	named         = `{instance_id: i-1, directory: DIR/host, runner: {distribution: DIR/runner}, store: {dynamodb: {region: us-east-1}}}`
	onInstance    = `{directory: DIR/host, runner: {distribution: DIR/runner}, store: {dynamodb: {}}, host_file: DIR/host.json}`
	instanceUnits = `{directory: DIR/host, runner: {distribution: DIR/runner}, store: {dynamodb: {}}, host_file: DIR/host.json, systemd: {}}`
	noHostFile    = `{directory: DIR/host, runner: {distribution: DIR/runner}, store: {dynamodb: {}}}`
)

// testSystem is a machine on which everything is there that the wiring looks for.
var testSystem = system{program: "/usr/bin/agentd", user: account{uid: 900, gid: 901, home: "/home/runner"}, docker: docker{path: "/usr/bin/docker", group: true}}

// wired is what the parts of an agentd are made with.
type wired struct {
	c     config
	place place
	host  host.Options
	agent agent.Options
	log   string
	// databases are the names of the database files that it opened.
	databases []string
	// asked is the first read of the record, in AWS: the region, and the body of the call.
	asked string
}

// reset is how the host is reset between runs. Only units have one.
func (w *wired) reset() hostReset { return w.host.Systemd.Reset.(hostReset) }

// wiringBench is where agents are wired: a directory, the metadata of an EC2 instance, and an AWS that knows who calls and refuses everything else.
type wiringBench struct {
	t   *testing.T
	dir string

	mu    sync.Mutex
	asked []string
}

const benchInstance = "i-0123456789abcdef0"

func newWiringBench(t *testing.T) *wiringBench {
	t.Helper()
	b := &wiringBench{t: t, dir: t.TempDir()}
	aws := httptest.NewServer(http.HandlerFunc(b.refuse))
	t.Cleanup(aws.Close)
	metadata := imdstest.Start(t, imdstest.Machine{
		InstanceID: benchInstance, Region: "us-east-1", Zone: "us-east-1a", Type: "c5.large", Arch: "x86_64", Lifecycle: "on-demand",
	})
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": aws.URL, "AWS_REGION": "", "AWS_PROFILE": "", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "x",
		"AWS_SESSION_TOKEN": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, metadataEndpoint: metadata.URL,
	} {
		t.Setenv(name, value)
	}
	check(t, os.WriteFile(filepath.Join(b.dir, "other.json"), []byte(`{"prefix": "acme"}`), 0o600))
	return b
}

var signedFor = regexp.MustCompile(`Credential=[^/]+/[0-9]+/([^/]+)/dynamodb/`)

func (b *wiringBench) refuse(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if strings.Contains(string(body), "Action=GetCallerIdentity") {
		fmt.Fprintf(w, `<GetCallerIdentityResponse><GetCallerIdentityResult><UserId>ROLE:%s</UserId></GetCallerIdentityResult></GetCallerIdentityResponse>`, benchInstance)
		return
	}
	if m := signedFor.FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
		b.mu.Lock()
		b.asked = append(b.asked, m[1]+" "+string(body))
		b.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprint(w, `{"__type":"AccessDeniedException","message":"not here"}`)
}

// settings is a file with some keys more, by their paths.
func (b *wiringBench) settings(base string, keys map[string]string) string {
	b.t.Helper()
	whole := b.parsed(base).(map[string]any)
	for path, text := range keys {
		steps := strings.Split(path, ".")
		at := whole
		for _, step := range steps[:len(steps)-1] {
			below, ok := at[step].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[step] = below
			}
			at = below
		}
		at[steps[len(steps)-1]] = b.parsed(text)
	}
	text, err := json.Marshal(whole) // which is YAML
	check(b.t, err)
	return string(text)
}

func (b *wiringBench) parsed(text string) (v any) {
	b.t.Helper()
	check(b.t, yaml.Unmarshal([]byte(strings.ReplaceAll(text, "DIR", b.dir)), &v))
	return v
}

// wire makes the parts of an agentd as run does, and reads the record once.
func (b *wiringBench) wire(text, hostFile string) (*wired, error) {
	b.t.Helper()
	check(b.t, os.WriteFile(filepath.Join(b.dir, "host.json"), []byte(hostFile), 0o600))
	path := filepath.Join(b.dir, "agentd.yaml")
	check(b.t, os.WriteFile(path, []byte(text), 0o600))
	b.databases(func(path string) { check(b.t, os.Remove(path)) })
	w := &wired{}
	var err error
	if w.c, err = readConfig(path); err != nil {
		return nil, err
	}
	w.log = b.logged(func() {
		w.host = w.c.hostOptions(testSystem, 0)
		if w.place, err = findPlace(b.t.Context(), w.c, func(err error) { b.t.Error(err) }); err != nil {
			return
		}
		w.agent = w.c.agentOptions(w.place, nil, w.c.logger(w.place.instanceID))
		w.agent.Logger.Error("wired")
		_, _, _ = w.place.store.Record(b.t.Context(), true) // there is none, or it is refused
		err = w.place.store.Close()
	})
	b.databases(func(path string) { w.databases = append(w.databases, filepath.Base(path)) })
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.asked) > 0 {
		w.asked, b.asked = b.asked[0], nil
	}
	return w, err
}

// databases does something with each database file.
func (b *wiringBench) databases(do func(path string)) {
	b.t.Helper()
	files, err := filepath.Glob(filepath.Join(b.dir, "*.db"))
	check(b.t, err)
	for _, file := range files {
		do(file)
	}
}

// logged is what a function writes to the standard error.
func (b *wiringBench) logged(do func()) string {
	b.t.Helper()
	file, err := os.CreateTemp(b.dir, "log")
	check(b.t, err)
	stderr := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = stderr }()
	do()
	check(b.t, file.Close())
	text, err := os.ReadFile(file.Name())
	check(b.t, err)
	return string(text)
}

// switched is a power switch whose machine does not end.
type switched struct{ powerSwitch }

var errStillOn = errors.New("still on")

func (switched) Await(context.Context) error { return errStillOn }
