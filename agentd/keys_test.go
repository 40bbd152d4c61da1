package main

import (
	"context"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/agent"
	"github.com/remuda-ci/remuda/internal/host"
	"github.com/remuda-ci/remuda/internal/host/power"
	"github.com/remuda-ci/remuda/internal/host/reset"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
)

// effect is what a key changes, in the words of the part that it is for.
type effect func(w *wired) any

// keyRow is a key, a value of it that is not its default, and its effect.
type keyRow struct {
	key, value string
	// on are the kinds of hosts that it is for.
	on []string
	// hostFile is beside it, where it is a key of agentd.yaml: that counts more.
	hostFile string
	got      effect
	want     any
}

var (
	everywhere = []string{processes, inUnits, named, onInstance, instanceUnits}
	withUnits  = []string{inUnits, instanceUnits}
	withAWS    = []string{named, onInstance}
	instances  = []string{onInstance, instanceUnits}
)

func ofHost(get func(host.Options) any) effect { return func(w *wired) any { return get(w.host) } }

func ofUnits(get func(host.Systemd) any) effect {
	return func(w *wired) any { return get(*w.host.Systemd) }
}

func ofReset(get func(reset.Plan) any) effect {
	return func(w *wired) any { return get(w.reset().plan) }
}

func ofAgent(get func(agent.Options) any) effect { return func(w *wired) any { return get(w.agent) } }

// asks looks at the first read of the record in AWS.
func asks(text string) effect {
	return func(w *wired) any { return strings.Contains(w.asked, text) }
}

func logs(text string) effect { return func(w *wired) any { return strings.Contains(w.log, text) } }

func opened(w *wired) any { return w.databases }

func levels(loggers ...hclog.Logger) (all []string) {
	for _, l := range loggers {
		all = append(all, l.GetLevel().String())
	}
	return all
}

// keyRows has at least one row for each key of agentd.yaml. A key that acts in several parts has several.
var keyRows = []keyRow{
	{key: "instance_id", value: "i-2", on: []string{processes, inUnits, named}, got: func(w *wired) any {
		return []string{w.host.InstanceID, w.place.instanceID, w.place.hostKey, w.agent.HostKey}
	}, want: []string{"i-2", "i-2", "i-2", "i-2"}},
	{key: "instance_id", value: "i-2", on: []string{named}, got: asks(`"i-2"`), want: true},
	{key: "instance_id", value: "i-2", on: everywhere[:3], got: logs("instance=i-2"), want: true},
	{key: "host_key", value: "ROLE:i-1", on: everywhere[:3], got: func(w *wired) any {
		return []string{w.place.hostKey, w.place.store.hostKey, w.agent.HostKey}
	}, want: []string{"ROLE:i-1", "ROLE:i-1", "ROLE:i-1"}},
	{key: "host_key", value: "ROLE:i-1", on: []string{named}, got: asks(`"ROLE:i-1"`), want: true},
	{key: "host_file", value: "DIR/other.json", on: []string{noHostFile}, got: asks("acme-instances"), want: true},
	{key: "directory", value: "/data", on: everywhere, got: func(w *wired) any {
		return []string{w.host.Dir, w.agent.State.(host.StateFile).Path, w.c.state("agent.lock")}
	}, want: []string{"/data", "/data/state/agent.json", "/data/state/agent.lock"}},
	{key: "directory", value: "/data", on: withUnits, got: ofReset(func(p reset.Plan) any {
		return []string{p.Renew[0].Path, p.Mirrors[0].To, p.Baseline}
	}), want: []string{"/data/work", "/data/runner", "/data/state/baseline.json"}},

	{key: "store.sqlite", value: "{path: DIR/section.db}", on: []string{withoutStore}, got: opened, want: []string{"section.db"}},
	{key: "store.sqlite.path", value: "DIR/path.db", on: []string{processes, inUnits}, got: opened, want: []string{"path.db"}},
	{key: "store.dynamodb", value: "{region: eu-west-1}", on: []string{withoutStore}, got: asks("eu-west-1 "), want: true},
	{key: "store.dynamodb.prefix", value: "other", on: withAWS, hostFile: `{"prefix": "acme"}`, got: asks(`"other-instances"`), want: true},
	{key: "store.dynamodb.region", value: "eu-west-1", on: withAWS, hostFile: `{"region": "eu-north-1"}`, got: asks("eu-west-1 "), want: true},

	{key: "runner.distribution", value: "/opt/other", on: everywhere, got: ofHost(func(o host.Options) any { return o.Distribution }), want: "/opt/other"},
	{key: "runner.distribution", value: "/opt/other", on: withUnits, got: ofReset(func(p reset.Plan) any {
		return []string{p.Mirrors[0].From, p.Unchanged[2]}
	}), want: []string{"/opt/other", "/opt/other"}},
	{key: "runner.env.<variable>", value: "y", on: everywhere, got: ofHost(func(o host.Options) any { return o.Env }), want: map[string]string{"X": "y"}},
	{key: "runner.job_summary", value: "true", on: everywhere, got: ofHost(func(o host.Options) any { return o.JobSummary }), want: true},
	{key: "runner.minimum_free_mib", value: "7", on: everywhere, got: ofHost(func(o host.Options) any { return o.MinimumFree }), want: uint64(7 << 20)},
	{key: "runner.minimum_free_mib", value: "7", on: withUnits, got: ofReset(func(p reset.Plan) any { return p.MinimumFree }), want: uint64(7 << 20)},

	{key: "caches", value: "[{name: go, paths: [~/go/pkg/mod], size_mib: 64, scope: owner, keep: 72h}]", on: everywhere,
		hostFile: `{"caches": [{"name": "npm", "paths": ["~/.npm"], "size_mib": 1}]}`,
		got:      ofHost(func(o host.Options) any { return o.Caches }), want: goCaches},
	{key: "caches", value: "[{name: tools, holds: tools, size_mib: 64}]", on: everywhere,
		got: ofHost(func(o host.Options) any { return o.Caches }), want: []cache.Spec{{Name: "tools", Holds: cache.HoldsTools, Size: 64 << 20}}},
	{key: "archives_url", value: "https://mirror.acme.com/archives", on: everywhere, got: ofHost(func(o host.Options) any { return o.ArchivesURL }),
		want: "https://mirror.acme.com/archives"},

	{key: "systemd", value: "{}", on: []string{processes, named, onInstance}, got: func(w *wired) any {
		return []any{w.host.Systemd != nil, w.c.awaitEnd(context.Background(), place{power: switched{}})}
	}, want: []any{true, errStillOn}},
	{key: "systemd", value: "{}", on: []string{onInstance}, got: logs("run as agentd's own user"), want: false},
	{key: "systemd.user", value: "ci", on: withUnits, got: ofUnits(func(o host.Systemd) any { return o.User }), want: "ci"},
	{key: "systemd.user", value: "ci", on: withUnits, got: ofReset(func(p reset.Plan) any { return p.User }), want: "ci"},
	{key: "systemd.user", value: "a-name-without-a-user", on: withUnits, got: func(w *wired) any {
		_, err := w.c.system()
		return strings.Contains(err.Error(), "a-name-without-a-user")
	}, want: true},
	{key: "systemd.limits.tasks", value: "777", on: withUnits, got: ofUnits(func(o host.Systemd) any { return o.Limits.Tasks }), want: uint64(777)},
	{key: "systemd.limits.open_files", value: "7777", on: withUnits, got: ofUnits(func(o host.Systemd) any { return o.Limits.OpenFiles }), want: uint64(7777)},
	{key: "systemd.limits.memory_mib", value: "777", on: withUnits, got: ofUnits(func(o host.Systemd) any { return o.Limits.MemoryMax }), want: uint64(777 << 20)},

	{key: "pre_runner.script", value: "/opt/pre.sh", on: everywhere, hostFile: `{"pre_runner": "/etc/pre.sh"}`,
		got: ofHost(func(o host.Options) any { return o.PreRunner }), want: "/opt/pre.sh"},
	{key: "pre_runner.timeout", value: "7m", on: everywhere, got: ofHost(func(o host.Options) any { return o.PreRunnerLimit }), want: 7 * time.Minute},
	{key: "post_release.script", value: "/opt/post.sh", on: withUnits, hostFile: `{"post_release": "/etc/post.sh"}`,
		got: ofReset(func(p reset.Plan) any { return p.Hook }), want: "/opt/post.sh"},
	{key: "post_release.timeout", value: "7s", on: withUnits, got: ofReset(func(p reset.Plan) any { return p.HookLimit }), want: 7 * time.Second},

	// How long an instance may look for its identity is in TestMachineThatIsNotInEC2.
	{key: "boot_timeout", value: "7m", on: everywhere, got: ofAgent(func(o agent.Options) any { return o.BootTimeout }), want: 7 * time.Minute},
	{key: "intervals.read_idle", value: "7s", on: everywhere, got: ofAgent(func(o agent.Options) any { return o.Intervals.ReadIdle }), want: 7 * time.Second},
	{key: "intervals.read_standby", value: "7s", on: everywhere, got: ofAgent(func(o agent.Options) any { return o.Intervals.ReadStandby }), want: 7 * time.Second},
	{key: "intervals.read_running", value: "7s", on: everywhere, got: ofAgent(func(o agent.Options) any { return o.Intervals.ReadRunning }), want: 7 * time.Second},
	{key: "intervals.heartbeat", value: "7s", on: everywhere, got: ofAgent(func(o agent.Options) any { return o.Intervals.Heartbeat }), want: 7 * time.Second},
	{key: "power_off", value: "[/sbin/poweroff, -f]", on: instances, got: func(w *wired) any { return w.place.power.(power.EC2).Command }, want: []string{"/sbin/poweroff", "-f"}},

	{key: "log_level", value: "debug", on: everywhere, got: func(w *wired) any { return levels(w.agent.Logger, w.host.Logger) }, want: []string{"debug", "debug"}},
	{key: "log_level", value: "debug", on: withUnits, got: func(w *wired) any { return levels(w.reset().log) }, want: []string{"debug"}},
	{key: "log_format", value: "json", on: everywhere, got: func(w *wired) any { return strings.HasPrefix(w.log, "{") }, want: true},
}

var goCaches = []cache.Spec{{Name: "go", Paths: []string{"~/go/pkg/mod"}, Size: 64 << 20, Scope: cache.ScopeOwner, Keep: 72 * time.Hour}}

// hostFileRows has a row for each key of the host file.
var hostFileRows = []keyRow{
	{key: "region", value: "eu-west-1", on: instances, got: asks("eu-west-1 "), want: true},
	{key: "prefix", value: "acme", on: instances, got: asks(`"acme-instances"`), want: true},
	{key: "pool", value: "build", on: instances, got: logs("pool=build"), want: true},
	{key: "pre_runner", value: "/etc/pre.sh", on: instances, got: ofHost(func(o host.Options) any { return o.PreRunner }), want: "/etc/pre.sh"},
	{key: "post_release", value: "/etc/post.sh", on: []string{instanceUnits}, got: ofReset(func(p reset.Plan) any { return p.Hook }), want: "/etc/post.sh"},
	{key: "privileged", value: "true", on: []string{instanceUnits}, got: ofUnits(func(o host.Systemd) any { return []any{o.Privileged, o.Groups} }), want: []any{true, []string{"docker"}}},
	{key: "privileged", value: "true", on: []string{instanceUnits}, got: ofReset(func(p reset.Plan) any { return p.Docker }), want: "/usr/bin/docker"},
	{key: "privileged", value: "true", on: []string{instanceUnits}, got: ofReset(func(p reset.Plan) any { return p.Images != nil }), want: true},
	{key: "caches", value: "[{name: go, paths: [~/go/pkg/mod], size_mib: 64, scope: owner, keep: 72h}]", on: instances,
		got: ofHost(func(o host.Options) any { return o.Caches }), want: goCaches},
	{key: "jobs_read_metadata", value: "true", on: []string{instanceUnits}, got: ofUnits(func(o host.Systemd) any { return o.JobsReadMetadata }), want: true},
	{key: "jobs_read_metadata", value: "true", on: []string{onInstance}, got: logs("run as agentd's own user"), want: false},
}

// TestEveryKeyHasItsEffect: whatever can be written in agentd.yaml or in the host file reaches the part that it is for. A key without a row fails,
// and so does a row whose effect is there without the key.
func TestEveryKeyHasItsEffect(t *testing.T) {
	b := newWiringBench(t)
	for _, row := range keyRows {
		for _, base := range row.on {
			t.Run(row.key, func(t *testing.T) {
				b.checkKey(t, row, base)
			})
		}
	}
	for _, row := range hostFileRows {
		for _, base := range row.on {
			t.Run("host file: "+row.key, func(t *testing.T) {
				without, err := b.wire(b.settings(base, nil), "{}")
				check(t, err)
				with, err := b.wire(b.settings(base, nil), b.settings("{}", map[string]string{row.key: row.value}))
				check(t, err)
				row.check(t, with, without)
			})
		}
	}
	eachHasARow(t, keysOf("", reflect.TypeFor[config]()), keyRows)
	eachHasARow(t, keysOf("", reflect.TypeFor[hostFile]()), hostFileRows)
}

func (b *wiringBench) checkKey(t *testing.T, row keyRow, base string) {
	t.Helper()
	hostFile := row.hostFile
	if hostFile == "" {
		hostFile = "{}"
	}
	path := strings.Replace(row.key, "<variable>", "X", 1)
	with, err := b.wire(b.settings(base, map[string]string{path: row.value}), hostFile)
	check(t, err)
	without, err := b.wire(b.settings(base, nil), hostFile)
	if err != nil {
		without = nil // the key is required
	}
	row.check(t, with, without)
}

func (r keyRow) check(t *testing.T, with, without *wired) {
	t.Helper()
	if diff := cmp.Diff(r.want, r.got.or(with), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("%s: %s has no such effect (-want +got):\n%s", r.key, r.value, diff)
	}
	if without != nil && cmp.Equal(r.want, r.got.or(without), cmpopts.EquateErrors()) {
		t.Errorf("%s: the effect of %s is there without the key", r.key, r.value)
	}
}

// or is the effect, or nil where the part is not there.
func (e effect) or(w *wired) (got any) {
	defer func() {
		if recover() != nil {
			got = nil
		}
	}()
	return e(w)
}

func eachHasARow(t *testing.T, keys []string, rows []keyRow) {
	t.Helper()
	left := map[string]bool{}
	for _, row := range rows {
		left[row.key] = true
	}
	for _, key := range keys {
		if !left[key] {
			t.Errorf("%s has no row: say what it changes", key)
		}
		delete(left, key)
	}
	for key := range left {
		t.Errorf("%s is no key", key)
	}
}

// keysOf are the keys of a section, with those below them. A section that may be left out is a key too: it may have an effect of its own.
func keysOf(path string, section reflect.Type) []string {
	var keys []string
	for i := range section.NumField() {
		name := section.Field(i).Tag.Get("yaml")
		if name == "" { // no file has it
			continue
		}
		key, kind := strings.TrimPrefix(path+"."+name, "."), section.Field(i).Type
		switch kind.Kind() {
		case reflect.Pointer:
			keys = append(append(keys, key), keysOf(key, kind.Elem())...)
		case reflect.Struct:
			keys = append(keys, keysOf(key, kind)...)
		case reflect.Map:
			keys = append(keys, key+".<variable>")
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// TestEveryKeyIsDocumented compares docs/agentd.md with the configuration and the host file.
func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/agentd.md")
	check(t, err)
	_, reference, found := strings.Cut(string(text), "## Configuration reference")
	if !found {
		t.Fatal("there is no reference")
	}
	rows := map[string]bool{"store.sqlite": true, "store.dynamodb": true} // their keys have rows
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` ").FindAllStringSubmatch(reference, -1) {
		rows[m[1]] = true
	}
	for _, key := range keysOf("", reflect.TypeFor[config]()) {
		if !rows[key] {
			t.Errorf("%s has no row", key)
		}
		delete(rows, key)
	}
	for key := range rows {
		t.Errorf("%s is no key", key)
	}
	line := regexp.MustCompile("(?m)^\\| `/etc/remuda/host.json` .*$").FindString(string(text))
	for _, key := range keysOf("", reflect.TypeFor[hostFile]()) {
		if !strings.Contains(line, "`"+key+"`") {
			t.Errorf("%s is not among the keys of host.json", key)
		}
	}
}

// TestEveryOptionIsFilled: with files that use everything, no part is left without something that it could be given, except what is named here with
// the reason.
func TestEveryOptionIsFilled(t *testing.T) {
	b := newWiringBench(t)
	w, err := b.wire(b.settings(processes, map[string]string{
		"systemd": "{limits: {memory_mib: 777}}", "runner.env": "{X: y}", "runner.job_summary": "true", "pre_runner.script": "/opt/pre.sh", "post_release.script": "/opt/post.sh",
		"caches": "[{name: images, holds: docker, size_mib: 64}]",
	}), "{}")
	check(t, err)
	w.c.Host.Privileged, w.c.Host.JobsReadMetadata = true, true
	w.host = w.c.hostOptions(testSystem, 0)
	const defaults = "its own default is meant"
	for name, part := range map[string]struct {
		options any
		left    map[string]string
	}{
		"host":      {w.host, map[string]string{"RefusalWait": defaults, "StandbyWait": defaults, "Power": "SetIdentity sets it"}},
		"units":     {*w.host.Systemd, nil},
		"limits":    {w.host.Systemd.Limits, nil},
		"reset":     {w.reset(), nil},
		"plan":      {w.reset().plan, map[string]string{"Root": "it is for tests", "Statement": "each clean-up has its own", "KeepImages": "each clean-up has its own"}},
		"agent":     {w.agent, map[string]string{"Host": "it is left out here", "Rand": defaults}},
		"intervals": {w.agent.Intervals, nil},
		"state":     {w.agent.State, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := reflect.ValueOf(part.options)
			for i := range v.NumField() {
				field := v.Type().Field(i).Name
				if v.Field(i).IsZero() != (part.left[field] != "") {
					t.Errorf("%s: left out: %v, with the reason %q", field, v.Field(i).IsZero(), part.left[field])
				}
			}
		})
	}
	if want := []string{testSystem.program, w.c.Path, w.c.Runner.Distribution}; !cmp.Equal(want, w.reset().plan.Unchanged) {
		t.Errorf("unchanged: %q, want %q", w.reset().plan.Unchanged, want)
	}
	if err := w.c.awaitEnd(t.Context(), place{}); err != nil {
		t.Errorf("a host without a switch: %v", err)
	}
}
