//go:build testhost

package host_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/local"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// cacheAttack is a job that attacks the caches of its host.
type cacheAttack struct {
	name string
	// from is what its run comes from; a push to the default branch, whose runs may write, if it is empty.
	from local.Origin
	harm string
	// refused: its run may write, and nothing of the cache that it attacks is kept.
	refused bool
	// nodes is how many files the volume of the caches has room for, beside those that are there; 0: as many as it is mounted with.
	nodes int
	// takes is how long the job may last; within, if it is 0.
	takes time.Duration
	// left prints what a later job finds of it, which is to be nothing.
	left string
}

// keepsNothing reports whether the store is to be as it was before the attack.
func (a cacheAttack) keepsNothing() bool { return a.refused || a.from != local.Origin{} }

var ofFork = local.Origin{Event: "pull_request", HeadRepository: "mallory/shop"}

// The cache of the pool, and a file that a trusted run has left in it.
const (
	cached  = "~/go/pkg/mod"
	trusted = "trusted content"
)

// broken is said by a job that could do what it must not.
const broken = "the job could"

// ofMounts prints the directories of the store that the mount of the cache names.
const ofMounts = `sed -n 's/.*lowerdir=\([^,]*\),upperdir=\([^,]*\),.*/\1:\2/p' /proc/self/mountinfo | tr : '\n'`

// fillNodes makes files in the cache until none fits on its volume.
const fillNodes = `cd ~/go/pkg/mod; mkdir full; seq -f full/%g 1 20000 | xargs touch 2>&1 | grep -m 1 'No space left' || exit 1`

// cacheAttacks each have a host, a cache and a run. None may change what the next run of a trusted branch began with, unless it is one itself
// and leaves plain files, and none leaves a trace that a later job can find.
var cacheAttacks = []cacheAttack{
	{
		name: "a fork poisons a file", from: ofFork,
		harm: "echo poison >>~/go/pkg/mod/good; echo poison >~/go/pkg/mod/more; mkdir ~/go/pkg/mod/evil",
		left: "ls -d ~/go/pkg/mod/more ~/go/pkg/mod/evil",
	},
	{
		name: "a fork poisons through the base branch's event", from: local.Origin{Event: "pull_request_target", HeadRepository: "mallory/shop"},
		harm: "echo poison >~/go/pkg/mod/good; touch ~/go/pkg/mod/more", left: "ls ~/go/pkg/mod/more",
	},
	{
		name: "a pull request of the repository itself", from: local.Origin{Event: "pull_request"},
		harm: "rm -rf ~/go/pkg/mod/*; touch ~/go/pkg/mod/more", left: "ls ~/go/pkg/mod/more",
	},
	{
		name: "an event that may carry foreign code", from: local.Origin{Event: "issue_comment"},
		harm: "echo poison >~/go/pkg/mod/good", left: "true",
	},
	{
		name: "links that lead out",
		harm: "cd ~/go/pkg/mod; ln -s /etc/passwd absolute; ln -s ../../../.bashrc up; mkdir -p d; ln -s . d/dot; ln -s d/dot/../../../../.ssh through; ln -s $HOME home",
		left: `cd ~/go/pkg/mod; ls -d absolute up through home`,
	},
	{
		name: "a hard link to a file elsewhere",
		harm: "echo secret >~/elsewhere; ln ~/elsewhere ~/go/pkg/mod/linked && echo '" + broken + "'; ln /etc/passwd ~/go/pkg/mod/passwd && echo '" + broken + "'; true",
		left: "ls ~/go/pkg/mod/linked ~/go/pkg/mod/passwd",
	},
	{
		name: "setuid and setgid",
		harm: "cp /bin/true ~/go/pkg/mod/root; chmod 6755 ~/go/pkg/mod/root; mkdir -m 3777 ~/go/pkg/mod/group",
		left: "find ~/go/pkg/mod -perm /7000",
	},
	{
		name: "pipes, sockets and devices",
		harm: `cd ~/go/pkg/mod; mkfifo pipe; perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "socket", Listen => 1) or die'
mknod null c 1 3 && echo '` + broken + `'; mknod white c 0 0 && echo '` + broken + `'; true`,
		left: "find ~/go/pkg/mod ! -type f ! -type d ! -type l",
	},
	{
		name: "extended attributes",
		harm: `perl -e 'my ($p, $n, $v) = (glob("~/go/pkg/mod/good"), "user.mark", "x"); syscall(188, $p, $n, $v, 1, 0) == 0 or warn "no attribute: $!";
for my $n ("trusted.overlay.opaque", "trusted.overlay.redirect", "security.capability") { print "` + broken + `\n" if syscall(188, $p, my $m = $n, $v, 1, 0) == 0 }'`,
		left: `perl -e 'my ($p, $b) = (glob("~/go/pkg/mod/good"), "\0" x 256); my $n = syscall(194, $p, $b, 256); print "attributes: $b\n" if $n > 0 && $b =~ /user|trusted|capability/'`,
	},
	{
		name: "a sparse file of a terabyte", harm: "truncate -s 1T ~/go/pkg/mod/bomb || truncate -s 10G ~/go/pkg/mod/bomb", left: "ls ~/go/pkg/mod/bomb",
	},
	{
		name: "more than its size", harm: "head -c 100M /dev/zero >~/go/pkg/mod/big", left: "ls ~/go/pkg/mod/big",
	},
	{
		name: "names with line breaks and escapes", harm: `touch ~/go/pkg/mod/$'a\nf 644 0 - "0:b"' ~/go/pkg/mod/$'\e[2J'`, left: `ls -d ~/go/pkg/mod/a* ~/go/pkg/mod/$'\e'*`,
	},
	{
		name: "three hundred directories deep", harm: `mkdir -p ~/go/pkg/mod/$(printf 'e/%.0s' $(seq 300))`, left: "ls -d ~/go/pkg/mod/e",
	},
	{
		name: "twenty thousand empty files and no right to see them", from: ofFork,
		harm: `cd ~/go/pkg/mod; mkdir many; perl -e 'for (1..20000) { open my $f, ">", "many/$_" or die }'; chmod 0 many`, left: "ls -d ~/go/pkg/mod/many",
	},
	{
		name: "a writer that outlives its job", from: ofFork,
		harm: `( setsid bash -c 'trap "" TERM HUP INT; while :; do echo poison >>~/go/pkg/mod/good; done' </dev/null >/dev/null 2>&1 & )
until grep -q poison ~/go/pkg/mod/good; do sleep 0.1; done`,
		left: `pgrep -u runner -fa poison | grep -v pgrep`,
	},
	{
		name: "a writer that outlives a trusted job, by an open file",
		harm: `cp ~/go/pkg/mod/good ~/go/pkg/mod/held
( setsid bash -c 'exec 9>>~/go/pkg/mod/held; trap "" TERM HUP INT; while :; do echo late >&9; sleep 0.01; done' </dev/null >/dev/null 2>&1 & )
until grep -q late ~/go/pkg/mod/held; do sleep 0.1; done`,
		left: `a=$(stat -c %s ~/go/pkg/mod/held); sleep 0.5; b=$(stat -c %s ~/go/pkg/mod/held); test "$a" = "$b" || echo "it grew from $a to $b"`,
	},
	{
		name: "a process that stays in the mount", from: ofFork,
		harm: `( cd ~/go/pkg/mod; setsid bash -c 'exec -a lurker sleep 1000' </dev/null >/dev/null 2>&1 & ); touch ~/go/pkg/mod/more`,
		left: `pgrep -u runner -fa lurker | grep -v pgrep; ls ~/go/pkg/mod/more`,
	},
	{
		name: "the place of the mount is moved away", from: ofFork,
		harm: "mv ~/go ~/moved; ln -s /etc ~/go; echo poison >~/moved/pkg/mod/good", left: "ls -d ~/moved; test ! -L ~/go || echo link",
	},
	{
		name: "the mount goes, or another comes over it", from: ofFork,
		harm: `umount ~/go/pkg/mod && echo '` + broken + `'
( setsid unshare -Urm bash -c 'mount -t tmpfs tmpfs ~/go/pkg/mod; touch ~/go/pkg/mod/more; exec -a mounter sleep 1000' </dev/null >/dev/null 2>&1 & ); sleep 0.5`,
		left: `pgrep -u runner -fa mounter | grep -v pgrep; ls ~/go/pkg/mod/more`,
	},
	{
		name: "the store by the paths that the mount names",
		harm: ofMounts + ` | while read dir; do [ "${dir#/opt/}" = "$dir" ] && ls "$dir" >/dev/null 2>&1 && echo '` + broken + ` list' "$dir"; touch "$dir/x" 2>/dev/null && echo '` + broken + ` write' "$dir"; true; done
( cd /var/lib/remuda/caches ) 2>/dev/null && echo '` + broken + ` enter'; true`,
		left: "ls ~/go/pkg/mod/x",
	},
	{
		name: "another repository's cache by guess",
		harm: `key=$(printf 'acme/other\0go' | sha256sum | cut -c1-16); for path in "$key" "$key/current"; do
stat "/var/lib/remuda/caches/$path" 2>&1 | grep -q 'Permission denied' || echo '` + broken + ` tell whether it is there'; done`,
		left: "true",
	},
	{
		// Of a file in memory, since the disk of these machines is an overlay, whose files have none. Who may open one may open all of a disk.
		name: "a file by its handle",
		harm: `echo mine >/dev/shm/mine
cat >/dev/shm/handle.pl <<'end'
my ($h, $m) = (pack("Lia128", 128, 0, ""), pack("i", 0));
syscall(303, -100, my $p = "/dev/shm/mine", $h, $m, 0) == 0 or die "no handle: $!";
open my $d, "<", "/dev/shm" or die;
print "` + broken + `\n" if syscall(304, fileno($d), $h, 0) >= 0;
end
perl /dev/shm/handle.pl
if unshare -Urm true; then unshare -Urm perl /dev/shm/handle.pl; fi`,
		left: "ls /dev/shm/mine",
	},
	{
		name: "a tool of the image",
		harm: `test "$RUNNER_TOOL_CACHE" = ~/hostedtoolcache && cd "$RUNNER_TOOL_CACHE" && test "$(cat go/1.21.0/x64/tool)" = image || exit 1
for dir in . /opt/hostedtoolcache; do
echo poison 2>/dev/null >$dir/go/1.21.0/x64/tool && echo '` + broken + ` write'; touch $dir/go/1.21.0/x64/more 2>/dev/null && echo '` + broken + ` add'; true
done
touch /opt/hostedtoolcache/go/1.21.0/arm64 2>/dev/null && echo '` + broken + ` add a version to the image'
rm go/1.21.0/x64.complete && mkdir -p go/1.22.0/x64 go/1.23.0/x64 && touch go/1.22.0/x64.complete`,
		left: `cd "$RUNNER_TOOL_CACHE"; test "$(cat go/1.21.0/x64/tool)" = image || echo poison; ls -d go/1.21.0/x64/more go/1.23.0; test -e go/1.21.0/x64.complete -a -e go/1.22.0/x64.complete || echo missing`,
	},
	{
		name: "a tool that a trusted run has added", from: ofFork,
		harm: `cd "$RUNNER_TOOL_CACHE" && echo poison >go/1.22.0/x64/tool && rm -rf go/1.21.0/x64.complete && mkdir -p go/1.24.0/x64 && touch go/1.24.0/x64.complete`,
		left: `cd "$RUNNER_TOOL_CACHE"; ls -d go/1.22.0/x64/tool go/1.24.0; test -e go/1.21.0/x64.complete -a -e go/1.22.0/x64.complete || echo missing`,
	},
	{
		name: "the archives of actions",
		harm: `cd "$ACTIONS_RUNNER_ACTION_ARCHIVE_CACHE" && test "$(cat actions_checkout/1.tar.gz)" = image || exit 1
for dir in . /opt/actionarchivecache; do
echo poison 2>/dev/null >$dir/actions_checkout/1.tar.gz && echo '` + broken + ` write'; touch $dir/actions_checkout/2.tar.gz 2>/dev/null && echo '` + broken + ` add'
mkdir $dir/actions_cache 2>/dev/null && echo '` + broken + ` add a repository'; rm -f $dir/actions_checkout/1.tar.gz 2>/dev/null && echo '` + broken + ` delete'; true
done
cd; mv "$ACTIONS_RUNNER_ACTION_ARCHIVE_CACHE" away 2>/dev/null && echo '` + broken + ` move it'; true`,
		left: `cd "$ACTIONS_RUNNER_ACTION_ARCHIVE_CACHE"; test "$(cat actions_checkout/1.tar.gz)" = image || echo poison; ls actions_checkout/2.tar.gz actions_cache`,
	},
	{
		name: "every file is read, touched, moved and deleted", from: ofFork,
		harm: `set +e; for dir in ~/go/pkg/mod ~/hostedtoolcache ~/actionarchivecache; do
find "$dir" -type f -exec cat {} + >/dev/null; find "$dir" -mindepth 1 -exec touch -ad @1 {} + -exec touch -md @2 {} + 2>/dev/null
find "$dir" -mindepth 1 -exec chmod 777 {} + 2>/dev/null; find "$dir" -type f -exec ln {} {}.linked \; -exec mv {} {}.moved \; 2>/dev/null
find "$dir" -type f -exec sh -c 'for f; do echo poison >>"$f"; done' - {} + 2>/dev/null; rm -rf "$dir"/* 2>/dev/null; mkdir -p "$dir/good" 2>/dev/null; true
done
test -d ~/go/pkg/mod/good || exit 1`,
		left: "true",
	},
	{
		name: "a race with the commit",
		harm: `mkdir ~/go/pkg/mod/race
cat >/dev/shm/racer.pl <<'end'
use POSIX ();
use Time::HiRes;
$SIG{$_} = "IGNORE" for qw(TERM HUP INT);
my ($n, $generation) = @ARGV;
for (my $at = "$ENV{HOME}/go/pkg/mod/race/$n";;) {
	$generation++;
	if (open my $f, ">", "$at.new") { print $f "$generation ", Time::HiRes::time(), "\n"; close $f; rename "$at.new", $at }
	if (open my $f, ">>", "$at.log") { print $f "$generation\n" x 100 }
	my $child = fork // next; exit if $child;
	POSIX::setsid();
	$child = fork // next; exit if $child;
	next if $generation % 20;
	symlink "/usr/bin/perl", "/dev/shm/racer$n-$generation";
	exec { "/dev/shm/racer$n-$generation" } "innocent$generation", "/dev/shm/racer.pl", $n, $generation;
}
end
for n in 1 2 3 4; do ( setsid perl /dev/shm/racer.pl $n 0 </dev/null >/dev/null 2>&1 & ); done
for n in 1 2 3 4; do until grep -q '^100$' ~/go/pkg/mod/race/$n.log; do sleep 0.1; done; done`,
		left: `cd ~/go/pkg/mod/race; test -s 1.log || echo 'nothing is kept'; sha256sum * >/tmp/race; sleep 0.5; sha256sum --quiet -c /tmp/race
pgrep -u runner -fa racer.pl | grep -v pgrep; ls -d /dev/shm/racer*`,
	},
	{
		name: "the volume is filled with files", refused: true,
		harm: `set +e; cd ~/go/pkg/mod; head -c 2G /dev/zero 2>&1 >full | grep 'No space left' || exit 1
for n in $(seq 200); do head -c 100k /dev/zero >more$n; done 2>/dev/null; touch empty 2>/dev/null; true`,
		left: "cd ~/go/pkg/mod; ls -d full more* empty",
	},
	{
		name: "the volume has no room for another file", refused: true, nodes: 5000,
		harm: fillNodes, left: "ls -d ~/go/pkg/mod/full",
	},
	{
		name: "a fork leaves no room for another file", from: ofFork, nodes: 5000,
		harm: fillNodes, left: "ls -d ~/go/pkg/mod/full",
	},
	{
		// More than a cache may have fit; the volume refuses the others one by one, as a disk does.
		name: "ten million files", refused: true, takes: 5 * time.Minute,
		harm: `cat >/dev/shm/many.pl <<'end'
use Fcntl;
use Errno "ENOSPC";
my ($made, $full) = (0, 0);
chdir "$ENV{HOME}/go/pkg/mod" or die;
for (1..5000000) {
	if ($_ % 500000 == 1) { my $dir = "$ENV{HOME}/go/pkg/mod/many$ARGV[0]-$_"; mkdir $dir and chdir $dir }
	if (sysopen my $f, $_, O_CREAT | O_WRONLY) { $made++ } elsif ($! == ENOSPC) { $full++ } else { die "$_: $!" }
}
print "made $made, and $full found no room\n";
end
for n in 1 2; do perl /dev/shm/many.pl $n >/dev/shm/made$n & done; wait; cat /dev/shm/made1 /dev/shm/made2
awk '{ made += $2; tried += $2 + $4 } END { exit !(made > 1000000 && tried == 10000000) }' /dev/shm/made1 /dev/shm/made2 || exit 1`,
		left: "ls -d ~/go/pkg/mod/many*",
	},
	{
		name: "files that the next run cannot read", from: ofFork, harm: "chmod 0 ~/go/pkg/mod/good ~/go/pkg/mod ~/go", left: "true",
	},
}

// volume is the mount of a file system for caches. The machines of these tests boot from overlayfs, and no overlay can be in another one.
const volume = `[Unit]
Before=agentd.service
[Mount]
What=tmpfs
Where=/var/lib/remuda/caches
Type=tmpfs
Options=mode=0700,size=256m,nr_inodes=1300k
`

// hasVolume gives a machine a volume of its own for caches.
func (s *system) hasVolume(t testing.TB) {
	t.Helper()
	const unit = "var-lib-remuda-caches.mount"
	units := filepath.Join(s.root, "etc/systemd/system")
	check(t, os.MkdirAll(filepath.Join(units, "local-fs.target.wants"), 0o755))
	check(t, os.WriteFile(filepath.Join(units, unit), []byte(volume), 0o644))
	check(t, os.Symlink("../"+unit, filepath.Join(units, "local-fs.target.wants", unit)))
}

// hasTools gives the image of a machine a tool, and the archive of an action.
func (s *system) hasTools(t testing.TB) {
	t.Helper()
	dir := filepath.Join(s.root, "opt/hostedtoolcache/go/1.21.0")
	check(t, os.MkdirAll(filepath.Join(dir, "x64"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "x64/tool"), []byte("image"), 0o644))
	check(t, os.WriteFile(filepath.Join(dir, "x64.complete"), nil, 0o644))
	dir = filepath.Join(s.root, "opt/actionarchivecache/actions_checkout")
	check(t, os.MkdirAll(dir, 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "1.tar.gz"), []byte("image"), 0o644))
}

// TestHostileCaches has jobs attack the cache of their host, each by its way, and looks at what a later job of the repository is given.
func TestHostileCaches(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(_ types.Instance, s *system) { s.hasVolume(t); s.hasTools(t) })
	seed := s.provision("800", "caching")
	s.begin("800", job{"seed", "echo '" + trusted + "' >" + cached + "/good"})
	s.succeeds("800", "seed")
	if s.release("800").GetPooledCount() != 1 {
		t.Fatalf("the host was withdrawn:\n%s", seed.lastJournal())
	}
	for n, attack := range cacheAttacks {
		if !t.Run(attack.name, func(t *testing.T) { s.as(t).cacheAttacked(seed, attack, strconv.Itoa(801+2*n), strconv.Itoa(802+2*n)) }) {
			return // the next one would find what this one has left
		}
	}
	t.Run("another repository on its host", func(t *testing.T) { s.as(t).cacheGuessed() })
	t.Run("an operator drops it", func(t *testing.T) { s.as(t).cacheDropped(seed) })
}

// cacheDropped has an operator drop the cache. The next run sees nothing of it, and the one after that sees what that one has left.
func (s *stage) cacheDropped(i *instance) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, within)
	defer cancel()
	got, err := s.fleet.DropCache(ctx, &remudav1.DropCacheRequest{Pool: "caching", Name: "go", Repository: repository, Reason: "poison"})
	if err != nil || got.GetHostCount() != 1 {
		s.Fatalf("dropped on %v: %v", got, err)
	}
	s.takesBack(i, "998")
	s.begin("998", job{"fresh", "ls " + cached + "; [ ! -e " + cached + "/good ] && echo new >" + cached + "/new && echo looked"})
	if found, _, _ := strings.Cut(s.succeeds("998", "fresh"), "looked"); strings.TrimSpace(found) != "" {
		s.Errorf("the next run found:\n%s\nThe host said:\n%s", found, i.lastJournal())
	}
	if s.release("998").GetPooledCount() != 1 {
		s.Fatalf("the host was withdrawn:\n%s", i.lastJournal())
	}
	s.takesBack(i, "999")
	s.begin("999", job{"look", "cat " + cached + "/new"})
	s.succeeds("999", "look")
	s.release("999")
}

func (s *stage) cacheAttacked(i *instance, attack cacheAttack, first, second string) {
	s.Helper()
	before := i.store()
	s.takesBack(i, first)
	if attack.nodes > 0 {
		i.sh(fmt.Sprintf("mount -o remount,nr_inodes=$(($(df --output=iused %s | tail -n 1) + %d)) %[1]s", storeDir, attack.nodes))
		defer i.sh("mount -o remount,nr_inodes=1300k " + storeDir)
	}
	s.beginFrom(first, attack.from, job{"harm", listViews + "\necho listed\n" + attack.harm + "\necho \"" + harmed + "\""})
	j := s.overWithin(first, "harm", cmp.Or(attack.takes, within))
	if log := afterScript(j.Log); !strings.Contains(log, harmed) || strings.Contains(log, broken) {
		s.Fatalf("the job came out as %q:\n%s", j.Conclusion, log)
	}
	if s.release(first).GetPooledCount() != 1 {
		s.Fatalf("the host was withdrawn; it and its agent said:\n%s", i.lastJournal())
	}
	if lives, _ := i.try("pgrep", "-u", "runner", "-fa", "."); lives != "" { // it fails if there is none
		s.Errorf("processes of jobs live in a clean host:\n%s", lives)
	}
	s.stored(i, before, attack)
	s.takesBack(i, second)
	s.beginFrom(second, local.Origin{Event: "pull_request"},
		job{"look", "cat " + cached + "/good\n( " + attack.left + " ) 2>/dev/null || true\necho looked\n" + listViews + "\necho listed"})
	found, views, _ := strings.Cut(s.succeeds(second, "look"), "looked")
	if had, has := untilListed(afterScript(j.Log)), untilListed(views); attack.keepsNothing() && had != has {
		s.Errorf("the views of a later job are\n%s\nand were\n%s", has, had)
	}
	if strings.TrimSpace(found) != trusted {
		s.Errorf("a later job found:\n%s\nThe host said:\n%s", found, i.words("remuda-clean"))
	}
	if s.release(second).GetPooledCount() != 1 {
		s.Errorf("the host was withdrawn after a run that only looked:\n%s", i.lastJournal())
	}
}

// takesBack provisions a run, which must get the host that waits.
func (s *stage) takesBack(i *instance, runID string) {
	s.Helper()
	s.takesBackFrom("caching", i, runID)
}

func (s *stage) takesBackFrom(pool string, i *instance, runID string) {
	s.Helper()
	if again := s.provision(runID, pool); again.id != i.id {
		s.Fatalf("run %s got %s, not the pooled %s", runID, again.id, i.id)
	}
}
