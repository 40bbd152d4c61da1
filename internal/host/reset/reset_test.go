package reset

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/tree"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(t, os.WriteFile(path, []byte(text), 0o755))
}

const rootMount = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"

// fakeHost is a directory that stands for /, and a plan for a host in it whose user runs the test.
func fakeHost(t *testing.T) Plan {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		"/proc/self/mountinfo":                          rootMount,
		"/proc/sys/kernel/random/boot_id":               "boot-1\n",
		"/proc/sys/net/ipv4/ip_local_port_range":        "32768\t60999\n",
		"/proc/net/tcp":                                 tcpFile,
		"/proc/net/udp":                                 "",
		"/proc/net/udp6":                                udp6File,
		"/etc/passwd":                                   "root",
		"/etc/systemd/system/a.service":                 "[Service]",
		"/usr/bin/agentd":                               "program",
		"/run/systemd/generator/a.service":              "[Service]",
		"/run/udev/rules.d/a.rules":                     "rules",
		"/run/systemd/transient/session-1.scope":        "",
		"/run/systemd/transient/old.service":            "",
		"/run/systemd/transient/remuda-clean-7.service": "",
		"/skel/.profile":                                "PATH",
		"/lib/bin/listener":                             "listener",
		"/state/x":                                      "",
		"/work/x":                                       "",
		"/tmp/x":                                        "",
	} {
		put(t, root+path, text)
	}
	check(t, os.Symlink("a.service", root+"/etc/systemd/system/b.service"))
	check(t, os.Symlink("a.rules", root+"/run/udev/rules.d/b.rules"))
	owner := tree.Owner{UID: os.Getuid(), GID: os.Getgid()}
	p := Plan{
		User: "runner", UID: 1001, GID: 1001, Root: root,
		Home: Dir{root + "/home", owner, 0o750}, Skeleton: root + "/skel",
		Renew:    []Dir{{root + "/work", owner, 0o755}},
		Empty:    []Dir{{root + "/tmp", owner, 0o777 | fs.ModeSticky}},
		Mirrors:  []Mirror{{root + "/lib", root + "/runner", owner}},
		Units:    []string{"remuda-runner-*"},
		OwnUnits: []string{"remuda-clean-*"},
		Baseline: root + "/state/baseline.json", Unchanged: []string{root + "/usr/bin/agentd", root + "/skel"},
	}
	check(t, p.renew())
	check(t, tree.Clear(root+"/tmp", owner, 0o777|fs.ModeSticky))
	return p
}

// findings returns those of the parts of Verify that need only the units of systemd.
func findings(t *testing.T, p Plan, m manager) []string {
	t.Helper()
	base, err := p.readBaseline()
	check(t, err)
	d := &Findings{}
	p.checkResources(t.Context(), d, m)
	p.checkDirectories(d)
	p.checkChanges(t.Context(), d, m, base)
	p.checkDiskSpace(d)
	found, _, err := p.imageUnits(m, base).findUnaccounted(t.Context(), base) // without waiting for it to end
	d.addErr(err)
	for _, s := range found {
		d.add("%s", s.sentence)
	}
	return d.All
}

func TestRecordAndCheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(t *testing.T, root string)
		// want are parts of the findings, each of one.
		want []string
	}{
		"nothing": {func(*testing.T, string) {}, nil},
		"a mount": {func(t *testing.T, root string) {
			put(t, root+"/proc/self/mountinfo", rootMount+"40 22 0:31 / /mnt rw - tmpfs x rw\n")
		}, []string{`tmpfs "x" is mounted at "/mnt"`}},
		"listener": {func(t *testing.T, root string) {
			put(t, root+"/proc/net/tcp", strings.Replace(tcpFile, "1F90", "1F91", 1))
		}, []string{"listens at tcp 127.0.0.1:8081"}},
		"a unit": {func(t *testing.T, root string) { put(t, root+"/etc/systemd/system/evil.service", "x") }, []string{"evil.service\" is new, and starts"}},
		"a link to a unit": {func(t *testing.T, root string) {
			check(t, os.Remove(root+"/etc/systemd/system/b.service"))
			check(t, os.Symlink("evil.service", root+"/etc/systemd/system/b.service"))
		}, []string{"to evil.service]"}},
		"a unit by a call":  {func(t *testing.T, root string) { put(t, root+"/run/systemd/transient/run-1.timer", "x") }, []string{"unit run-1.timer was made by a call"}},
		"a scope by a call": {func(t *testing.T, root string) { put(t, root+"/run/systemd/transient/run-u1.scope", "x") }, []string{"unit run-u1.scope was made by a call"}},
		"a slice by a call": {func(t *testing.T, root string) { put(t, root+"/run/systemd/transient/evil.slice", "x") }, []string{"unit evil.slice was made by a call"}},
		"a login":           {func(t *testing.T, root string) { put(t, root+"/run/systemd/transient/session-2.scope", "x") }, nil},
		"another clean-up":  {func(t *testing.T, root string) { put(t, root+"/run/systemd/transient/remuda-clean-8.service", "x") }, nil},
		"a unit until the next boot": {func(t *testing.T, root string) { put(t, root+"/run/systemd/system/evil.service", "x") },
			[]string{"evil.service\" is new, and starts", "run/systemd/system\" is new"}},
		"units that are made again": {func(t *testing.T, root string) {
			check(t, os.RemoveAll(root+"/run/systemd/generator"))
			put(t, root+"/run/systemd/generator/a.service", "[Service]")
			check(t, os.RemoveAll(root+"/run/udev/rules.d"))
			put(t, root+"/run/udev/rules.d/a.rules", "rules")
			check(t, os.Symlink("a.rules", root+"/run/udev/rules.d/b.rules"))
		}, nil},
		"rules that are made otherwise": {func(t *testing.T, root string) { put(t, root+"/run/udev/rules.d/a.rules", "evil") }, []string{"a.rules\" is ["}},
		"a link that is made otherwise": {func(t *testing.T, root string) {
			check(t, os.Remove(root+"/run/udev/rules.d/b.rules"))
			check(t, os.Symlink("evil", root+"/run/udev/rules.d/b.rules"))
		}, []string{"to evil]"}},
		"a preload": {func(t *testing.T, root string) { put(t, root+"/etc/ld.so.preload", "x") }, []string{"ld.so.preload\" is new"}},
		"deleted":   {func(t *testing.T, root string) { check(t, os.Remove(root+"/etc/passwd")) }, []string{"passwd\" was deleted"}},
		"an unseen change": {func(t *testing.T, root string) { // of the same size, with the time set back
			info, err := os.Stat(root + "/usr/bin/agentd")
			check(t, err)
			put(t, root+"/usr/bin/agentd", "PROGRAM")
			check(t, os.Chtimes(root+"/usr/bin/agentd", info.ModTime(), info.ModTime()))
		}, []string{"agentd\" is ["}},
		"a file in an empty directory": {func(t *testing.T, root string) { put(t, root+"/work/a\nb", "x") }, []string{`work/a\nb" is left`}},
		"a mode":                       {func(t *testing.T, root string) { check(t, os.Chmod(root+"/work", 0o700)) }, []string{"work is drwx------"}},
		"a link for a directory": {func(t *testing.T, root string) {
			check(t, os.Remove(root+"/work"))
			check(t, os.Symlink("/", root+"/work"))
		}, []string{"work is Lrwx", "work"}},
		"a file in home":         {func(t *testing.T, root string) { put(t, root+"/home/.ssh/config", "x") }, []string{`.ssh" is left`, `.ssh/config" is left`}},
		"another file in home":   {func(t *testing.T, root string) { put(t, root+"/home/.profile", "path") }, []string{`.profile" has another content`}},
		"a file that is missing": {func(t *testing.T, root string) { check(t, os.Remove(root+"/runner/bin/listener")) }, []string{`listener" is missing`}},
		"another program": {func(t *testing.T, root string) {
			check(t, os.Remove(root+"/runner/bin/listener"))
			put(t, root+"/runner/bin/listener", "evil")
		}, []string{`listener" has another content`}},
		"a job for later": {func(t *testing.T, root string) { put(t, root+"/var/spool/cron/crontabs/runner", "x") },
			[]string{"crontabs/runner\" would start", "runner\" is new", "crontabs\" is new", "cron\" is new"}},
		"a file where everybody may write": {func(t *testing.T, root string) {
			everybodys(t, root+"/run/lock")
			put(t, root+"/run/lock/x", "x")
			check(t, os.Lchown(root+"/run/lock/x", 1001, 1001))
		}, []string{`run/lock/x" of user runner is left`}},
		"lingering": {func(t *testing.T, root string) { put(t, root+"/var/lib/systemd/linger/runner", "") }, []string{"linger/runner\" would start"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeHost(t)
			check(t, Record(t.Context(), p))
			test.change(t, p.Root)
			got := findings(t, p, standIn{})
			for _, want := range test.want {
				if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
					t.Errorf("no finding with %q", want)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("findings %q, want %d", got, len(test.want))
			}
			if len(test.want) == 0 {
				return
			}
			check(t, p.renew())
			check(t, p.removeScheduledJobs())
			check(t, os.WriteFile(p.at("/proc/self/mountinfo"), []byte(rootMount), 0o644))
		})
	}
}

func TestRoom(t *testing.T) {
	t.Parallel()
	p := fakeHost(t)
	p.MinimumFree, p.MinimumFreeInodes = 1<<62, 1<<62
	d := &Findings{}
	p.checkDiskSpace(d)
	if got := d.Error(); !strings.Contains(got, "MiB are free for "+p.Home.Path) {
		t.Errorf("findings: %s", got)
	}
}

func TestBaselineOfAnotherBoot(t *testing.T) {
	t.Parallel()
	p := fakeHost(t)
	if _, err := p.readBaseline(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that there is none", err)
	}
	check(t, Record(t.Context(), p))
	put(t, p.at("/proc/sys/kernel/random/boot_id"), "boot-2\n")
	if _, err := p.readBaseline(); err == nil || !strings.Contains(err.Error(), "another boot") {
		t.Errorf("error %v", err)
	}
	put(t, p.Baseline, "{")
	if _, err := p.readBaseline(); err == nil {
		t.Error("half a baseline was read")
	}
	if err := Run(t.Context(), p, hclog.NewNullLogger()); err == nil || !strings.Contains(err.Error(), "baseline") {
		t.Errorf("clean without baseline: %v", err)
	}
	if err := Verify(t.Context(), p); err == nil || !strings.Contains(err.Error(), "baseline") {
		t.Errorf("check without baseline: %v", err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := map[string]func(p *Plan){
		"root":                func(p *Plan) { p.UID = 0 },
		"no user":             func(p *Plan) { p.User = "" },
		"a path for a user":   func(p *Plan) { p.User = "../x" },
		"the root to renew":   func(p *Plan) { p.Renew[0].Path = "/" },
		"a relative path":     func(p *Plan) { p.Home.Path = "home" },
		"a path with detours": func(p *Plan) { p.Empty[0].Path = "/tmp/../etc" },
		"all units":           func(p *Plan) { p.Units = []string{"*"} },
		"no pattern":          func(p *Plan) { p.OwnUnits = []string{"[a"} },
		"no limit":            func(p *Plan) { p.Hook = "/hook" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeHost(t)
			check(t, p.Validate())
			change(&p)
			if p.Validate() == nil || Record(t.Context(), p) == nil || Run(t.Context(), p, hclog.NewNullLogger()) == nil || Verify(t.Context(), p) == nil {
				t.Error("it was taken")
			}
		})
	}
}

// Sockets that are there before the first run stay, unless they were swapped.
func TestSockets(t *testing.T) {
	t.Parallel()
	p := fakeHost(t)
	tmp := p.Empty[0].Path
	check(t, os.Mkdir(tmp+"/.X11-unix", 0o777))
	for _, name := range []string{"/.X11-unix/X0", "/.X11-unix/X1", "/s", "/swapped"} {
		check(t, syscall.Mknod(tmp+name, syscall.S_IFSOCK|0o777, 0))
	}
	put(t, tmp+"/file", "x")
	base, err := p.sockets()
	check(t, err)
	check(t, os.Remove(tmp+"/swapped"))
	check(t, syscall.Mknod(tmp+"/swapped", syscall.S_IFSOCK|0o777, 0))
	check(t, os.Remove(tmp+"/.X11-unix/X1"))
	put(t, tmp+"/.X11-unix/X1", "x")
	check(t, syscall.Mknod(tmp+"/new", syscall.S_IFSOCK|0o777, 0))
	names := unchangedIn(tmp, base)
	slices.Sort(names)
	equal(t, "kept", []string{".X11-unix", "s"}, names)
	equal(t, "kept for displays", []string{"X0"}, unchangedIn(tmp+"/.X11-unix", base))
}

func TestPrivateUnit(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("0f", 16)
	for name, want := range map[string]string{
		"systemd-private-" + id + "-systemd-logind.service-AbCd12":   "systemd-logind.service",
		"systemd-private-" + id + "-a-b@c.service-AbCd12":            "a-b@c.service",
		"systemd-private-" + id + "-AbCd12":                          "",
		"systemd-private-x-systemd-logind.service-AbCd12":            "",
		"systemd-private-" + id + "-a.service-AbCd12/../../../etc/x": "",
	} {
		match := privateTmp.FindStringSubmatch(name)
		if (match == nil) != (want == "") || (match != nil && match[1] != want) {
			t.Errorf("%s: %q", name, match)
		}
	}
	dir, name := t.TempDir(), "systemd-private-"+id+"-a.service-AbCd12"
	check(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	if _, ok := privateUnit(dir, name); ok {
		t.Error("a directory that everybody may enter is private")
	}
}

// script is a program that does what the text says.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	put(t, path, "#!/bin/sh\n"+text)
	return path
}

// A stand-in for docker keeps its things in files of a directory.
const fakeDocker = `cd "$(dirname "$0")"
echo "$@" >>calls
case "$1 $2" in
"ps -aq") cat container;;
"network ls") case "$*" in *scope=swarm*) cat swarm 2>/dev/null || true;; *) cat network;; esac;;
"swarm leave") rm swarm; sed -i /ingress/d network;;
"volume ls") cat volume;;
"rm -f") if test -e going; then rm going; echo c2 >container; echo "is already in progress" >&2; exit 1; fi; : >container; sed -i /anonymous/d volume;;
"network rm") case "$*" in *ingress*) echo "a swarm needs it" >&2; exit 1;; esac; : >network;;
"volume rm") case "$*" in *anonymous*) echo "no such volume" >&2; exit 1;; esac; : >volume;;
*) exit 9;;
esac
`

func TestContainers(t *testing.T) {
	t.Parallel()
	p := Plan{Root: t.TempDir(), Docker: program(t, fakeDocker)}
	dir := filepath.Dir(p.Docker)
	for name, text := range map[string]string{
		"container": "c1\nc2\n", "network": "n1\ningress\n", "volume": "anonymous\nnamed\n", "swarm": "ingress\n", "going": "",
	} {
		put(t, filepath.Join(dir, name), text)
	}
	idle, active := standIn{dockerUnit: {name: dockerUnit, fragment: "/x"}}, standIn{dockerUnit: {name: dockerUnit, fragment: "/x", began: 1}}
	check(t, p.removeDockerObjects(t.Context(), active))
	if _, err := os.Stat(dir + "/calls"); err == nil {
		t.Error("docker was called without its socket")
	}
	put(t, p.at("/run/docker.sock"), "")
	put(t, p.at("/var/lib/docker/volumes/metadata.db"), "")
	check(t, p.removeDockerObjects(t.Context(), idle))
	if _, err := os.Stat(dir + "/calls"); err == nil {
		t.Error("docker was called, which starts its daemon")
	}
	d := &Findings{}
	p.checkResources(t.Context(), d, active)
	if len(d.All) != 6 {
		t.Errorf("findings before: %q", d.All)
	}
	check(t, p.removeDockerObjects(t.Context(), active))
	found, err := p.dockerObjects(t.Context(), active)
	check(t, err)
	equal(t, "left", 0, len(slices.Concat(found...)))

	p.Docker = program(t, "echo cannot connect >&2; exit 1")
	for name, m := range map[string]standIn{"a daemon that runs": active, "one that is no unit": {}} {
		if err := p.removeDockerObjects(t.Context(), m); err == nil || !strings.Contains(err.Error(), "cannot connect") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	check(t, p.removeDockerObjects(t.Context(), idle))
	put(t, p.at("/var/lib/docker/containers/id/config.v2.json"), "") // of another boot
	if err := p.removeDockerObjects(t.Context(), idle); err == nil || !strings.Contains(err.Error(), "cannot connect") {
		t.Errorf("containers are left: error %v", err)
	}
}

func TestPopulated(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root+"/remuda.slice/remuda-runner-1.service/cgroup.events", "populated 1\nfrozen 0\n")
	put(t, root+"/remuda.slice/remuda-runner-2.service/cgroup.events", "populated 0\nfrozen 0\n")
	put(t, root+"/system.slice/remuda-clean-2.service/cgroup.events", "populated 1\n")
	found, err := populatedGroups(root, []string{"remuda-runner-*"})
	check(t, err)
	equal(t, "populated", []string{root + "/remuda.slice/remuda-runner-1.service"}, found)
}
