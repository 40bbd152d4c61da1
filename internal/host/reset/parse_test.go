package reset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestParseMounts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []mount
		bad  bool
	}{
		"none": {},
		"a root": {
			text: "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n",
			want: []mount{{Root: "/", Point: "/", Kind: "ext4", Source: "/dev/vda"}},
		},
		"without and with several optional fields": {
			text: "36 22 0:31 /a /mnt rw - tmpfs none rw\n37 22 0:31 / /m rw master:1 propagate_from:2 unbindable - tmpfs t rw\n",
			want: []mount{{Root: "/a", Point: "/mnt", Kind: "tmpfs", Source: "none"}, {Root: "/", Point: "/m", Kind: "tmpfs", Source: "t"}},
		},
		"odd names": {
			text: `40 22 0:31 /x\040y /home/a\012b\011c\134d\043 rw - fuse.x\040y s\040t rw` + "\n",
			want: []mount{{Root: "/x y", Point: "/home/a\nb\tc\\d#", Kind: "fuse.x y", Source: "s t"}},
		},
		"a name that ends within an escape": {
			text: `40 22 0:31 / /a\04 rw - tmpfs \ rw` + "\n",
			want: []mount{{Root: "/", Point: `/a\04`, Kind: "tmpfs", Source: `\`}},
		},
		"without a source": {
			text: "40 22 0:31 / /a rw - tmpfs  rw\n",
			want: []mount{{Root: "/", Point: "/a", Kind: "tmpfs"}},
		},
		"cut short":    {text: "40 22 0:31 / /a rw\n", bad: true},
		"without kind": {text: "40 22 0:31 / /a rw - x\n", bad: true},
		"too short":    {text: "40 22 - tmpfs x rw\n", bad: true},
		"empty line":   {text: "\n", bad: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseMounts(test.text)
			if (err != nil) != test.bad {
				t.Errorf("error %v, want one: %t", err, test.bad)
			}
			equal(t, "mounts", test.want, got)
		})
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n")
	f.Add(`40 22 0:31 /x\040y /home/a\012b rw - fuse.x\040y s\040t rw` + "\n")
	f.Add("a - b")
	f.Fuzz(func(t *testing.T, text string) {
		mounts, err := parseMounts(text)
		if lines := len(strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")); err == nil && text != "" && len(mounts) != lines {
			t.Errorf("%d mounts of %d lines", len(mounts), lines)
		}
	})
}

func TestForeignMounts(t *testing.T) {
	t.Parallel()
	plan := Plan{UID: 1001, Home: Dir{Path: "/home/runner"}, Renew: []Dir{{Path: "/work"}}}
	at := func(point, kind string) mount { return mount{Point: point, Root: "/", Kind: kind, Source: "x"} }
	base := []mount{at("/", "ext4"), at("/tmp", "tmpfs"), at("/work", "ext4"), at("/work/cache", "ext4")}
	tests := map[string]struct {
		added             []mount
		claimed           []string // places of units
		foreign, unwanted []string
	}{
		"nothing new":            {unwanted: []string{"/work/cache"}},
		"elsewhere":              {added: []mount{at("/mnt", "ext4")}, foreign: []string{"/mnt"}, unwanted: []string{"/mnt", "/work/cache"}},
		"over one that is known": {added: []mount{at("/tmp", "tmpfs")}, foreign: []string{"/tmp"}, unwanted: []string{"/tmp", "/work/cache"}},
		"one in another": {
			added:   []mount{at("/work/a", "tmpfs"), at("/work/a/b", "tmpfs")},
			foreign: []string{"/work/a/b", "/work/a"}, unwanted: []string{"/work/a/b", "/work/a", "/work/cache"},
		},
		"the login of an operator":     {added: []mount{at("/run/user/0", "tmpfs")}, unwanted: []string{"/work/cache"}},
		"a login of the user":          {added: []mount{at("/run/user/1001", "tmpfs")}, foreign: []string{"/run/user/1001"}, unwanted: []string{"/run/user/1001", "/work/cache"}},
		"in the login of an operator":  {added: []mount{at("/run/user/0/x", "tmpfs")}, foreign: []string{"/run/user/0/x"}, unwanted: []string{"/run/user/0/x", "/work/cache"}},
		"credentials":                  {added: []mount{at("/run/credentials/x.service", "ramfs")}, unwanted: []string{"/work/cache"}},
		"a disk among the credentials": {added: []mount{at("/run/credentials/x", "ext4")}, foreign: []string{"/run/credentials/x"}, unwanted: []string{"/run/credentials/x", "/work/cache"}},
		"formats of programs":          {added: []mount{at("/proc/sys/fs/binfmt_misc", "binfmt_misc")}, unwanted: []string{"/work/cache"}},
		"of a unit":                    {added: []mount{at("/mnt", "ext4")}, claimed: []string{"/mnt"}, unwanted: []string{"/work/cache"}},
		"of a unit, with one over it": {
			added: []mount{at("/mnt", "ext4"), at("/mnt", "tmpfs")}, claimed: []string{"/mnt"},
			foreign: []string{"/mnt"}, unwanted: []string{"/mnt", "/work/cache"},
		},
		"of a unit, with one that it mounts when it is looked at": {
			added: []mount{at("/mnt", "autofs"), at("/mnt", "ext4")}, claimed: []string{"/mnt"}, unwanted: []string{"/work/cache"},
		},
		"over one of a unit that is known": {
			added: []mount{at("/tmp", "tmpfs")}, claimed: []string{"/tmp"},
			foreign: []string{"/tmp"}, unwanted: []string{"/tmp", "/work/cache"},
		},
		"of a unit, in the work directory": {added: []mount{at("/work/a", "ext4")}, claimed: []string{"/work/a"}, unwanted: []string{"/work/a", "/work/cache"}},
		"beside a directory that begins":   {added: []mount{at("/workshop", "ext4")}, foreign: []string{"/workshop"}, unwanted: []string{"/workshop", "/work/cache"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := append(base[:len(base):len(base)], test.added...)
			claimed := func(m mount) bool { return slices.Contains(test.claimed, m.Point) }
			equal(t, "foreign", test.foreign, points(plan.foreignMounts(now, base, claimed)))
			equal(t, "unwanted", test.unwanted, points(plan.unwantedMounts(now, base, claimed)))
		})
	}
}

func points(mounts []mount) (points []string) {
	for _, m := range mounts {
		points = append(points, m.Point)
	}
	return points
}

const tcpFile = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 5 1 0 100 0 0 10 0
   1: 0100007F:0016 0200007F:C000 01 00000000:00000000 00:00000000 00000000     0        0 6 1 0 100 0 0 10 0
`

const udp6File = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  55: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000  1001        0 5 2 0 0
  56: 0000000000000000FFFF00000100007F:0044 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000  1001        0 5 2 0 0
  57: 00000000000000000000000001000000:9C40 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000  1001        0 5 2 0 0
  58: 00000000000000000000000001000000:0036 00000000000000000000000001000000:0035 01 00000000:00000000 00:00000000 00000000  1001        0 5 2 0 0
`

func TestListeners(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file, text string
		want       []string
		bad        bool
	}{
		"nothing":           {"tcp", "", nil, false},
		"the heading alone": {"tcp", "  sl  local_address\n", nil, false},
		"tcp":               {"tcp", tcpFile, []string{"127.0.0.1:8080"}, false},
		"udp6, with ports of the kernel's choice and a connected one": {"udp6", udp6File, []string{"[::1]:53", "[::ffff:127.0.0.1]:68"}, false},
		"tcp on a port of the kernel's choice":                        {"tcp", strings.Replace(tcpFile, "1F90", "9C40", 1), []string{"127.0.0.1:40000"}, false},
		"a short line":                                                {"tcp", "x\n 0: 0100007F:1F90\n", nil, true},
		"an odd address":                                              {"tcp", "x\n 0: 010000:1F90 0:0 0A 0:0 0:0 0 0 0 5\n", nil, true},
		"an odd port":                                                 {"tcp", "x\n 0: 0100007F:XXXX 0:0 0A 0:0 0:0 0 0 0 5\n", nil, true},
		"no port":                                                     {"tcp", "x\n 0: 0100007F 0:0 0A 0:0 0:0 0 0 0 5\n", nil, true},
		"no inode":                                                    {"tcp", "x\n 0: 0100007F:1F90 0:0 0A 0:0 0:0 0 0 0 x\n", nil, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeHost(t)
			for _, file := range []string{"tcp", "udp", "udp6"} {
				put(t, p.at("/proc/net/"+file), "")
			}
			put(t, p.at("/proc/net/"+test.file), test.text)
			found, err := p.listeners()
			if (err != nil) != test.bad {
				t.Errorf("error %v, want one: %t", err, test.bad)
			}
			var got []string
			for _, l := range found {
				got = append(got, l.Address.String())
				if l.Protocol != strings.TrimSuffix(test.file, "6") || l.inode != 5 {
					t.Errorf("protocol %s, inode %d", l.Protocol, l.inode)
				}
			}
			equal(t, "addresses", test.want, got)
		})
	}
}

func TestNewListeners(t *testing.T) {
	t.Parallel()
	base := []listener{listens("tcp", "0.0.0.0:22", 1), listens("udp", "127.0.0.1:53", 2)}
	added := []listener{listens("tcp", "127.0.0.1:22", 4), listens("udp", "0.0.0.0:22", 5), listens("udp", "0.0.0.0:22", 6)}
	now := append([]listener{listens("tcp", "0.0.0.0:22", 3)}, added...)
	equal(t, "new", added, newListeners(now, base), compareListeners)
	equal(t, "none", []listener{}, newListeners(base, base), compareListeners)
}

func TestParsePorts(t *testing.T) {
	t.Parallel()
	got, err := parsePorts("32768\t60999\n")
	if err != nil || got != (ports{32768, 60999}) || !got.contain(32768) || !got.contain(60999) || got.contain(32767) || got.contain(61000) {
		t.Errorf("%v, error %v", got, err)
	}
	for _, text := range []string{"", "1", "a b", "1 70000"} {
		if _, err := parsePorts(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestProcessesOfTheUser(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		uids, state string
		threads     int
		ours        bool
	}{
		"another's":                {"0\t0\t0\t0", "S", 1, false},
		"real":                     {"1001\t0\t0\t0", "S", 1, true},
		"effective":                {"0\t1001\t0\t0", "S", 1, true},
		"saved":                    {"0\t0\t1001\t0", "S", 1, true},
		"for files":                {"0\t0\t0\t1001", "S", 1, true},
		"dead":                     {"1001\t1001\t1001\t1001", "Z", 1, false},
		"dead but for its threads": {"1001\t1001\t1001\t1001", "Z", 2, true},
		"stopped":                  {"1001\t1001\t1001\t1001", "T", 2, true},
		"a number that begins so":  {"10010\t10010\t10010\t10010", "S", 1, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeHost(t)
			put(t, p.at("/proc/50/status"), "Name:\tx\nTgid:\t50\nUid:\t"+test.uids+"\n")
			put(t, p.at("/proc/50/stat"), fmt.Sprintf("50 (x) %s 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 %d 0 500%s\n", test.state, test.threads, statRest))
			found, err := p.userProcesses()
			check(t, err)
			if got := slices.Contains(found, userProcess{50, "x"}); got != test.ours {
				t.Errorf("%v", found)
			}
		})
	}
	p := fakeHost(t)
	put(t, p.at("/proc/50/status"), "")
	if found, err := p.userProcesses(); err == nil {
		t.Errorf("one that cannot be read: %v", found)
	}
}

const semFile = `       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime
1711341570          0   600          1  1001  1001  1001  1001          0 1795335000
         0          5   600          1     0     0  1001  1001          0 1795335000
        -1          6   600          1     0     0     0     0          0 1795335000
`

func TestParseIPC(t *testing.T) {
	t.Parallel()
	ids, err := parseIPC(semFile, "semid", 1001)
	check(t, err)
	equal(t, "ids", []int{0, 5}, ids)
	for name, text := range map[string]string{
		"nothing": "", "other columns": "a b c\n", "a short line": "semid uid cuid\n1 2\n", "no number": "semid uid cuid\n1 2 x\n",
	} {
		if ids, err := parseIPC(text, "semid", 1001); err == nil {
			t.Errorf("%s: %v", name, ids)
		}
	}
}

func FuzzParseIPC(f *testing.F) {
	f.Add(semFile)
	f.Fuzz(func(t *testing.T, text string) {
		if ids, err := parseIPC(text, "semid", 1001); err == nil && len(ids) > strings.Count(text, "1001") {
			t.Errorf("%v of %q", ids, text)
		}
	})
}

func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	d := &Findings{}
	for range 1000 {
		d.add("%s", strings.Repeat("x", 10))
	}
	if len(d.All) != maxFindings || d.More != 1000-maxFindings || !strings.HasSuffix(d.Error(), "and 988 more") {
		t.Errorf("%d and %d: %v", len(d.All), d.More, d)
	}
}
