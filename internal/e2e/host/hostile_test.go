//go:build testhost

package host_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// harmed is said by a job that has done all its harm.
const harmed = "the harm is done"

// hostile is a job that harms its host, and what becomes of that.
type hostile struct {
	name, pool, harm string
	// bombs says that the job may not get to its own end.
	bombs bool
	// left prints what the next run of the host finds, which is to be nothing; ""
	// where the host is withdrawn.
	left string
	// doubt is all that the clean-up says against the host, a regular expression; ""
	// where it is pooled again.
	doubt string
}

// TestHostileJobs: some jobs that harm their host, through the whole of it. The
// many are tested in internal/host/reset and internal/tree, in machines
// too. A host is pooled again, and the next run finds nothing there, or it is
// withdrawn for the doubt that its job is meant to raise, and for no other.
func TestHostileJobs(t *testing.T) {
	t.Parallel()
	tests := []hostile{
		{
			name: "a daemon that does not hear TERM", pool: "default",
			harm: `( setsid bash -c '( trap "" TERM HUP INT; while :; do echo x >>/tmp/log; sleep 0.1; done ) & disown' </dev/null >/dev/null 2>&1 & )
until test -s /tmp/log; do sleep 0.1; done`,
			left: `ls /tmp/log; pgrep -u runner -fa 'while :' | grep -v pgrep`,
		},
		{
			name: "links and files that lead out of the tree", pool: "default",
			harm: "mkdir -p a/b; ln -s /etc a/b/etc; ln -s / $HOME/root; ln -sfn /etc $HOME/.config; ln -s /etc/passwd /tmp/passwd",
			left: `ls -d a ~/root ~/.config /tmp/passwd; test -s /etc/passwd || echo passwd; test -d /etc/systemd || echo etc`,
		},
		{
			name: "files where everybody may write", pool: "default",
			harm: "mkdir -p /run/lock/a/b; chmod 0 /run/lock/a/b; ln -s /etc /run/lock/etc; touch /dev/mqueue/q; id -u >/run/lock/uid",
			left: `find /run /var /dev -user runner -path '*lock*'; ls /run/lock/uid /dev/mqueue/q`,
		},
		{
			name: "a fork bomb and a port", pool: "default", bombs: true,
			harm: `perl -MIO::Socket::INET -e 'fork and exit; setpgrp; my $s = IO::Socket::INET->new(Listen => 5, LocalPort => 4711) or die; sleep 1000' </dev/null >/dev/null 2>&1 &
until grep -qi ' [0-9A-F]*:1267 ' /proc/net/tcp; do sleep 0.1; done
echo "` + harmed + `"
( setsid bash -c 'b() { b | b & sleep 1; }; timeout 3 bash -c "$(declare -f b); b" ' </dev/null >/dev/null 2>&1 & )
sleep 2`,
			left: `grep -i ' [0-9A-F]*:1267 ' /proc/net/tcp; pgrep -u runner -fa 4711 | grep -v pgrep`,
		},
		{
			name: "files and mounts of root", pool: "rooted",
			harm: `sudo -n mkdir -p deep/er && sudo -n touch deep/er/file && sudo -n chattr +i deep/er/file deep
sudo -n mkdir -p /mnt/kept bound && sudo -n touch /mnt/kept/file && sudo -n mount --bind /mnt/kept bound
sudo -n bash -c 'setsid sleep 12345 </dev/null >/dev/null 2>&1 &'`,
			left: `ls -d deep bound; test -e /mnt/kept/file || echo deleted across a mount; pgrep -fa 'sleep 12345' | grep -v pgrep`,
		},
		{
			name: "a process of root in a scope", pool: "rooted",
			harm:  "sudo -n bash -c 'setsid systemd-run --quiet --scope --unit=evil sleep 12346 </dev/null >/dev/null 2>&1 & sleep 1'",
			doubt: `unit evil\.scope was made by a call: [^;]+; process \d+ \("sleep"\) of evil\.scope runs and did not before: [^;]+`,
		},
	}
	s := newStage(t, func(_ types.Instance, s *system) {
		// Few enough that a fork bomb leaves this machine to the other tests, and of a user of their own: the kernel counts the processes of a
		// user over all machines that share its users.
		run(t, "chroot", s.root, "usermod", "--uid", "5353", "runner")
		run(t, "sed", "-i", "s/^systemd: {user: runner}$/systemd: {user: runner, limits: {tasks: 512}}/", s.root+"/etc/remuda/agentd.yaml")
	})
	for n, tt := range tests {
		if !t.Run(tt.name, func(t *testing.T) { s.as(t).harmedBy(tt, strconv.Itoa(601+2*n), strconv.Itoa(602+2*n)) }) {
			return // a host that is not clean would fail the next one too
		}
	}
	t.Run("jobs of another run", func(t *testing.T) { s.as(t).refuses("701", "799") })
}

// foreignJobs are jobs of another run that name the label of one that has a host. All that GitHub's runner runs after a hook that
// failed is in them.
const foreignJobs = `
on: push
jobs:
  steps:
    runs-on: "RUN"
    steps:
      - uses: standin/pre-post@v1
        if: always()
        with: {pre: touch /var/tmp/loot-pre, main: touch /var/tmp/loot-main, post: touch /var/tmp/loot-post}
      - {if: always(), run: touch /var/tmp/loot-always}
      - {if: failure(), run: touch /var/tmp/loot-failure}
      - {if: '!cancelled()', run: touch /var/tmp/loot-not-cancelled}
  container:
    runs-on: "RUN"
    container: alpine
    steps:
      - uses: standin/pre-post@v1
        with: {pre: touch /var/tmp/loot-pre-of-container}
      - {if: always(), run: touch /var/tmp/loot-always-of-container}
`

// refuses has jobs of another run come to the host of a run. Nothing of them runs; the run goes on, and its host is then withdrawn.
func (s *stage) refuses(runID, foreign string) {
	s.Helper()
	i := s.provision(runID, "default")
	_, err := s.github.StartRun(s.ctx, repository, foreign, strings.ReplaceAll(foreignJobs, "RUN", runID))
	check(s, err)
	for _, name := range []string{"steps", "container"} {
		if j := s.over(foreign, name); j.Conclusion != "failure" || !strings.Contains(j.Log, "remuda: refused. This is a job of run "+foreign) {
			s.Errorf("job %s came out as %q:\n%s", name, j.Conclusion, j.Log)
		}
	}
	s.begin(runID, job{"own", "ls /var/tmp/loot-* 2>/dev/null || true\necho looked"})
	if found, _, _ := strings.Cut(s.succeeds(runID, "own"), "looked"); strings.TrimSpace(found) != "" {
		s.Errorf("of the refused jobs ran:\n%s", found)
	}
	if s.release(runID).GetPooledCount() != 0 {
		s.Error("a host that met a job of another run was pooled")
	}
	i.goesDown(within)
}

// harmedBy lets a job of the first run harm its host, and looks at what the second
// is given.
func (s *stage) harmedBy(tt hostile, first, second string) {
	s.Helper()
	i := s.provision(first, tt.pool)
	s.begin(first, job{"harm", tt.harm + "\necho \"" + harmed + "\""})
	j := s.over(first, "harm")
	if log := afterScript(j.Log); !strings.Contains(log, harmed) || j.Conclusion != "success" && !tt.bombs {
		s.Fatalf("the job came out as %q:\n%s", j.Conclusion, log)
	}
	pooled := s.release(first).GetPooledCount() == 1
	if tt.doubt != "" {
		if pooled {
			s.Fatal("the host was not withdrawn")
		}
		s.withdrawn(i, tt.doubt)
		return
	}
	if !pooled {
		s.Fatalf("the host was withdrawn; it and its agent said:\n%s", i.lastJournal())
	}
	if again := s.provision(second, tt.pool); again.id != i.id {
		s.Fatalf("run %s got %s, not the pooled %s", second, again.id, i.id)
	}
	s.begin(second, job{"look", "( " + tt.left + " ) 2>/dev/null || true\necho looked"})
	found, _, _ := strings.Cut(s.succeeds(second, "look"), "looked")
	if found = strings.TrimSpace(found); found != "" {
		s.Errorf("the next run found:\n%s", found)
	}
	if s.release(second).GetPooledCount() != 1 {
		s.Errorf("the host was withdrawn after a run that only looked:\n%s", i.lastJournal())
	}
}

// withdrawn waits until a host has gone for a doubt of its clean-up, and for no
// other reason.
func (s *stage) withdrawn(i *instance, doubt string) {
	s.Helper()
	i.goesDown(within)
	said := i.words("remuda-clean")
	if !regexp.MustCompile(`(?m)check host: ` + doubt + `$`).MatchString(said) {
		s.Errorf("the clean-up did not doubt the host for %q alone:\n%s", doubt, said)
	}
}
