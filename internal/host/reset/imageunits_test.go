package reset

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/host/reset/fingerprint"
)

// standIn is a system manager with these units by name, and no other.
type standIn map[string]unit

func (s standIn) unit(_ context.Context, name string) (unit, error) {
	if u, ok := s[name]; ok {
		return u, nil
	}
	return unit{name: name, active: "inactive"}, nil
}

// sockets: each listens at port 8081, with TCP.
func (s standIn) sockets(context.Context) ([]socketUnit, error) {
	var found []socketUnit
	for name, u := range s {
		if strings.HasSuffix(name, ".socket") {
			found = append(found, socketUnit{u, []listener{listens("tcp", "127.0.0.1:8081", 0)}})
		}
	}
	return found, nil
}

func (s standIn) mainPIDs(context.Context) (map[int]string, error) {
	found := map[int]string{}
	for name, u := range s {
		if strings.HasSuffix(name, ".service") && u.mainPID > 0 {
			found[u.mainPID] = name
		}
	}
	return found, nil
}

// deaf is a system manager that does not answer.
type deaf struct{}

var errDeaf = errors.New("no answer")

func (deaf) unit(context.Context, string) (unit, error)       { return unit{}, errDeaf }
func (deaf) sockets(context.Context) ([]socketUnit, error)    { return nil, errDeaf }
func (deaf) mainPIDs(context.Context) (map[int]string, error) { return nil, errDeaf }

func listens(protocol, address string, inode uint64) listener {
	return listener{protocol, netip.MustParseAddrPort(address), inode}
}

var compareListeners = cmp.Options{
	cmp.AllowUnexported(listener{}), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
}

const (
	regularPrint = "100644 0:0 5 bytes"
	linkPrint    = "120777 0:0 5 bytes to x"
	pipePrint    = "10644 0:0 5 bytes"
	directory    = "40755 0:0"
)

func TestPasses(t *testing.T) {
	t.Parallel()
	p := Plan{Units: []string{"remuda-runner-*.service"}, OwnUnits: []string{"remuda-clean-7.service"}}
	files := fingerprint.Set{
		"/usr/lib/systemd/system/a.service": regularPrint, "/etc/systemd/system/a.service": regularPrint,
		"/usr/local/lib/systemd/system/a.service": regularPrint, "/run/systemd/generator.late/a.service": regularPrint,
		"/etc/systemd/system/a.service.d/x.conf": regularPrint, "/etc/systemd/system/link.service": linkPrint,
		"/etc/systemd/system/pipe.service": pipePrint, "/etc/systemd/system/dir.service": directory,
		"/etc/cron.d/a.service": regularPrint, "/run/systemd/system/a.service": regularPrint, "/run/systemd/system.control/a.service": regularPrint,
	}
	tests := map[string]struct {
		unit unit
		want bool
	}{
		"of the distribution":                {unit{fragment: "/usr/lib/systemd/system/a.service"}, true},
		"of Debian 12":                       {unit{fragment: "/lib/systemd/system/a.service"}, true},
		"of the image":                       {unit{fragment: "/etc/systemd/system/a.service"}, true},
		"of what was built in the image":     {unit{fragment: "/usr/local/lib/systemd/system/a.service"}, true},
		"of what is made at boot":            {unit{fragment: "/run/systemd/system/a.service"}, true},
		"of a generator":                     {unit{fragment: "/run/systemd/generator.late/a.service"}, true},
		"with a drop-in":                     {unit{fragment: "/etc/systemd/system/a.service", dropIns: []string{"/etc/systemd/system/a.service.d/x.conf"}}, true},
		"without a file":                     {unit{}, false},
		"new or changed":                     {unit{fragment: "/etc/systemd/system/b.service"}, false},
		"with a drop-in that is new":         {unit{fragment: "/etc/systemd/system/a.service", dropIns: []string{"/etc/systemd/system/a.service.d/y.conf"}}, false},
		"with one of a call":                 {unit{fragment: "/etc/systemd/system/a.service", dropIns: []string{"/run/systemd/system.control/a.service.d/50-CPUQuota.conf"}}, false},
		"by a call":                          {unit{fragment: "/usr/lib/systemd/system/a.service", transient: true}, false},
		"a link":                             {unit{fragment: "/etc/systemd/system/link.service"}, false},
		"a pipe":                             {unit{fragment: "/etc/systemd/system/pipe.service"}, false},
		"a directory":                        {unit{fragment: "/etc/systemd/system/dir.service"}, false},
		"where no units are":                 {unit{fragment: "/etc/cron.d/a.service"}, false},
		"where none of the image are":        {unit{fragment: "/run/systemd/system.control/a.service"}, false},
		"a path that leads back":             {unit{fragment: "/lib/systemd/../../etc/systemd/system/b.service"}, false},
		"one of ours, of a run":              {unit{name: "remuda-runner-1.service", fragment: "/etc/systemd/system/a.service"}, false},
		"one of ours":                        {unit{name: "remuda-clean-7.service", fragment: "/etc/systemd/system/a.service"}, false},
		"the manager of another user":        {unit{name: "user@1000.service", fragment: "/usr/lib/systemd/system/a.service"}, false},
		"docker, which starts what runs say": {unit{name: "docker.service", fragment: "/usr/lib/systemd/system/a.service"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := p.isTrusted(test.unit, files); got != test.want {
				t.Errorf("%t", got)
			}
		})
	}
}

func TestOwns(t *testing.T) {
	t.Parallel()
	running := unit{name: "a.service", active: "active", mainPID: 10, began: 5 * time.Second, ready: 6 * time.Second}
	script := unit{name: "a.service", active: "active", began: 5 * time.Second, ready: 6 * time.Second}
	starting := unit{name: "a.service", active: "activating", began: 5 * time.Second}
	again := unit{name: "a.service", active: "activating", began: 5 * time.Second, ready: 2 * time.Second}
	waiting := again // with RestartSec=
	waiting.sub = "auto-restart"
	reloading, stopping := running, script
	reloading.active, reloading.controlPID, stopping.active, stopping.controlPID = "reloading", 20, "deactivating", 20
	tests := map[string]struct {
		unit unit
		line []int
		born time.Duration
		want bool
	}{
		"the main process":                         {running, []int{10}, 5 * time.Second, true},
		"the main process after a reload":          {running, []int{10}, 50 * time.Second, true},
		"a child":                                  {running, []int{12, 10}, 50 * time.Second, true},
		"a grandchild":                             {running, []int{13, 12, 10}, 50 * time.Second, true},
		"a daemon of the start":                    {running, []int{12}, 5500 * time.Millisecond, true},
		"moved in by root":                         {running, []int{12, 9}, 50 * time.Second, false},
		"moved in by root, from before":            {running, []int{12, 9}, time.Second, false},
		"a daemon of a script":                     {script, []int{12}, 5500 * time.Millisecond, true},
		"a daemon of a script that was noted late": {script, []int{12}, 4100 * time.Millisecond, true},
		"a daemon of a script's last hundredth":    {script, []int{12}, 6*time.Second + 9*time.Millisecond, true},
		"moved in after the script":                {script, []int{12}, 7 * time.Second, false},
		"moved in before the script":               {script, []int{12}, 3900 * time.Millisecond, false},
		"a daemon of a script that still runs":     {starting, []int{12}, 50 * time.Second, true},
		"of a script that runs again":              {again, []int{12}, 50 * time.Second, true},
		"moved in while it waits to run again":     {waiting, []int{12}, 50 * time.Second, false},
		"moved in before it runs":                  {again, []int{12}, 3 * time.Second, false},
		"a reload":                                 {reloading, []int{20}, 50 * time.Second, true},
		"a child of a reload":                      {reloading, []int{21, 20}, 50 * time.Second, true},
		"moved in during a reload":                 {reloading, []int{22}, 50 * time.Second, false},
		"what stops it":                            {stopping, []int{20}, 50 * time.Second, true},
		"moved in while it stops":                  {stopping, []int{22}, 50 * time.Second, false},
		"in a unit that never began":               {unit{name: "a.service", active: "inactive"}, []int{12}, 0, false},
		"in a unit that failed":                    {unit{name: "a.service", active: "failed", began: 5 * time.Second}, []int{12}, 6 * time.Second, false},
		"in another unit":                          {unit{name: "b.service", active: "active", mainPID: 10}, []int{10}, 0, false},
		"whose parent is systemd":                  {unit{name: "a.service", active: "active", mainPID: 1}, []int{12, 1}, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.unit.owns(process{unit: "a.service", ancestry: test.line, started: test.born}); got != test.want {
				t.Errorf("%t", got)
			}
		})
	}
}

// ofImage is a unit of the fake host's image, whose main process is 77.
func ofImage(name string) unit {
	return unit{name: name, fragment: "/etc/systemd/system/a.service", active: "active", mainPID: 77}
}

// statRest is what stands in stat behind the start time.
var statRest = strings.Repeat(" 0", 30)

// process writes what /proc has of a process that holds sockets.
func (p Plan) process(t *testing.T, pid, parent int, group string, inodes ...int) {
	t.Helper()
	dir := p.at("/proc/" + strconv.Itoa(pid))
	put(t, dir+"/cgroup", "1:name=systemd:/x\n0::"+group+"\n")
	put(t, dir+"/status", fmt.Sprintf("Name:\tx\nTgid:\t%d\nUid:\t0\t0\t0\t0\n", pid))
	put(t, dir+"/stat", fmt.Sprintf("%d (a) (b) S %d 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500%s\n", pid, parent, statRest))
	check(t, os.MkdirAll(dir+"/fd", 0o755))
	for i, inode := range inodes {
		check(t, os.Symlink("socket:["+strconv.Itoa(inode)+"]", dir+"/fd/"+strconv.Itoa(i)))
	}
}

// A listener that was not there before is accounted for by all who hold it.
func TestLateListeners(t *testing.T) {
	t.Parallel()
	const sshd = "/system.slice/sshd.service"
	image := standIn{"sshd.service": ofImage("sshd.service"), "sshd.socket": ofImage("sshd.socket")}
	evil := standIn{
		"sshd.service": {name: "sshd.service", fragment: "/run/systemd/system/sshd.service", mainPID: 77},
		"sshd.socket":  {name: "sshd.socket", transient: true},
	}
	tests := map[string]struct {
		systemd manager
		make    func(t *testing.T, p Plan)
		want    string // in the finding; "" for none
	}{
		"no process":           {image, func(*testing.T, Plan) {}, "something listens at tcp 127.0.0.1:8081"},
		"a service":            {image, func(t *testing.T, p Plan) { p.process(t, 77, 1, sshd, 4, 5) }, ""},
		"a child of a service": {image, func(t *testing.T, p Plan) { p.process(t, 77, 1, sshd); p.process(t, 78, 77, sshd, 5) }, ""},
		"a group in a service": {image, func(t *testing.T, p Plan) { p.process(t, 77, 1, sshd+"/payload", 5) }, ""},
		"a socket unit":        {image, func(t *testing.T, p Plan) { p.process(t, 1, 0, "/init.scope", 5) }, ""},
		"a socket unit and its service": {image, func(t *testing.T, p Plan) {
			p.process(t, 1, 0, "/init.scope", 5)
			p.process(t, 77, 1, sshd, 5)
		}, ""},
		"systemd, without a socket unit": {standIn{}, func(t *testing.T, p Plan) { p.process(t, 1, 0, "/init.scope", 5) }, "(\"a) (b\") of init.scope listens"},
		"a service of which nothing is known": {
			standIn{}, func(t *testing.T, p Plan) { p.process(t, 77, 1, sshd, 5) }, `process 77 ("a) (b") of sshd.service listens at tcp 127.0.0.1:8081`,
		},
		"a service that is not of the image":     {evil, func(t *testing.T, p Plan) { p.process(t, 77, 1, sshd, 5) }, "of sshd.service listens"},
		"a socket unit that is not of the image": {evil, func(t *testing.T, p Plan) { p.process(t, 1, 0, "/init.scope", 5) }, "of init.scope listens"},
		"a service, and another process": {image, func(t *testing.T, p Plan) {
			p.process(t, 77, 1, sshd, 5)
			p.process(t, 79, 1, "/user.slice/user-1000.slice/session-1.scope", 5)
		}, "listens at tcp 127.0.0.1:8081"},
		"a process that root moved into a service": {image, func(t *testing.T, p Plan) { p.process(t, 79, 1, sshd, 5) }, "process 79"},
		"a session": {image, func(t *testing.T, p Plan) { p.process(t, 77, 1, "/user.slice/session-1.scope", 5) }, "of session-1.scope listens"},
		"a unit's file that was changed": {image, func(t *testing.T, p Plan) {
			p.process(t, 77, 1, sshd, 5)
			put(t, p.at("/etc/systemd/system/a.service"), "[Service]\nExecStart=/evil")
		}, "of sshd.service listens"},
		"systemd does not answer": {deaf{}, func(t *testing.T, p Plan) { p.process(t, 77, 1, sshd, 5) }, "no answer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeHost(t)
			check(t, Record(t.Context(), p))
			put(t, p.at("/proc/net/tcp"), strings.Replace(tcpFile, "1F90", "1F91", 1))
			test.make(t, p)
			got := strings.Join(findings(t, p, test.systemd), "; ")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("findings %q, want %q", got, test.want)
			}
		})
	}
}

// What a generator makes again is the same by its content.
func TestLateMounts(t *testing.T) {
	t.Parallel()
	const generated = "/run/systemd/generator/mnt-a\\x20b.mount"
	tests := map[string]struct {
		fragment string
		later    string // the content of the generated unit at the end
		want     []string
	}{
		"a unit of the image":           {"/etc/systemd/system/a.service", "Where=/mnt/a b", nil},
		"a generated unit":              {generated, "Where=/mnt/a b", nil},
		"a generated unit that changed": {generated, "Where=/mnt/a b\nWhat=evil", []string{"/mnt/a b"}},
		"no unit with a file":           {"", "Where=/mnt/a b", []string{"/mnt/a b"}},
		"a generated unit that is new":  {"/run/systemd/generator/x.mount", "Where=/mnt/a b", []string{"/mnt/a b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeHost(t)
			put(t, p.at(generated), "Where=/mnt/a b")
			check(t, Record(t.Context(), p))
			check(t, os.RemoveAll(p.at("/run/systemd/generator")))
			put(t, p.at(generated), test.later)
			put(t, p.at("/run/systemd/generator/x.mount"), "x")
			base, err := p.readBaseline()
			check(t, err)
			units := p.imageUnits(standIn{`mnt-a\x20b.mount`: {name: `mnt-a\x20b.mount`, fragment: test.fragment}}, base)
			foreign := p.foreignMounts([]mount{{Point: "/mnt/a b", Kind: "ext4"}}, nil, func(m mount) bool {
				ok, err := units.accountsForMount(t.Context(), m)
				check(t, err)
				return ok
			})
			equal(t, "foreign", test.want, points(foreign))
		})
	}
}

// A mount at a place that is too long for the name of a unit belongs to no unit, and systemd is not asked.
func TestLongMount(t *testing.T) {
	t.Parallel()
	claimed, err := fakeHost(t).imageUnits(deaf{}, baseline{}).accountsForMount(t.Context(), mount{Point: "/" + strings.Repeat("x", unitNameMax)})
	if err != nil || claimed {
		t.Errorf("%t, error %v", claimed, err)
	}
}

func TestUnitOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0::/system.slice/ssh.service\n":                                                  "ssh.service",
		"0::/system.slice/system-a.slice/a@1.service/x/b.service\n":                       "a@1.service",
		"12:pids:/evil.service\n1:name=systemd:/evil.service\n0::/system.slice/a.service": "a.service",
		"0::/user.slice/user-1.slice/user@1.service/app.slice/a.service\n":                "user@1.service",
		"0::/system.slice/a.service (deleted)\n":                                          "a.service (deleted)",
		"0::/\n":                                                                          "", "0::/system.slice\n": "", "": "", "10::/a.service\n": "",
	} {
		if got := unitOf(groupIn(t, text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// groupIn is the control group that a file of /proc says.
func groupIn(t *testing.T, text string) string {
	t.Helper()
	p := fakeHost(t)
	put(t, p.at("/proc/7/cgroup"), text)
	group, err := p.proc().Cgroup(7)
	check(t, err)
	return group
}

func TestLoginOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0::/user.slice/user-0.slice/session-3.scope\n":                       "user-0.slice",
		"0::/user.slice/user-1000.slice/user@1000.service/init.scope\n":       "user-1000.slice",
		"0::/user.slice/x.scope\n":                                            "",
		"0::/system.slice/user.slice/user-0.slice/session-3.scope\n":          "",
		"1:name=systemd:/user.slice/user-0.slice\n0::/system.slice/a.service": "",
		"": "",
	} {
		if got := loginOf(groupIn(t, text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestReadListen(t *testing.T) {
	t.Parallel()
	pairs := [][]any{
		{"Stream", "[::]:22"}, {"Datagram", "0.0.0.0:69"}, {"Stream", "[fe80::1%2]:80"}, {"Stream", "/run/docker.sock"},
		{"Netlink", "kobject-uevent 1"}, {"Stream"}, {7, "0.0.0.0:1"},
	}
	want := []listener{listens("tcp", "[::]:22", 0), listens("udp", "0.0.0.0:69", 0), listens("tcp", "[fe80::1]:80", 0)}
	equal(t, "listeners", want, readListen(pairs), compareListeners)
}

func TestReadUnit(t *testing.T) {
	t.Parallel()
	properties := func() map[string]any {
		return map[string]any{
			"Id": "a.service", "FragmentPath": "/f", "DropInPaths": []string{"/d"}, "Transient": true, "ActiveState": "active", "SubState": "running",
			"InactiveExitTimestampMonotonic": uint64(1), "ActiveEnterTimestampMonotonic": uint64(2),
		}
	}
	got, err := readUnit(properties())
	check(t, err)
	want := unit{
		name: "a.service", fragment: "/f", dropIns: []string{"/d"}, transient: true, active: "active", sub: "running",
		began: time.Microsecond, ready: 2 * time.Microsecond,
	}
	equal(t, "unit", want, got, cmp.AllowUnexported(unit{}))
	for name := range properties() {
		without := properties()
		delete(without, name)
		if u, err := readUnit(without); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v, error %v", name, u, err)
		}
	}
}

// The baseline has no inodes: those of a boot are described nowhere else.
func TestBaselineWithoutInodes(t *testing.T) {
	t.Parallel()
	p := fakeHost(t)
	check(t, Record(t.Context(), p))
	base, err := p.readBaseline()
	check(t, err)
	if len(base.Listeners) == 0 || slices.ContainsFunc(base.Listeners, func(l listener) bool { return l.inode != 0 }) {
		t.Errorf("listeners %v", base.Listeners)
	}
}
