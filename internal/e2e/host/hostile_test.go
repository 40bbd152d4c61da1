//go:build testhost

package host_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// TestHostileJobs: some jobs that harm their host, through the whole of it. The
// many are tested in internal/host/slate and internal/host/tree, in machines
// too. After each, the next run of the same host finds nothing.
func TestHostileJobs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, pool, harm string
		// left prints what the next run finds; "" where the host must be withdrawn.
		left string
	}{
		{
			"a daemon that does not hear TERM", "default",
			`( setsid bash -c '( trap "" TERM HUP INT; while :; do echo x >>/tmp/log; sleep 0.1; done ) & disown' </dev/null >/dev/null 2>&1 & )`,
			`pgrep -u runner -fa 'while :' | grep -v pgrep`,
		},
		{
			"links and files that lead out of the tree", "default",
			"mkdir -p a/b; ln -s /etc a/b/etc; ln -s / $HOME/root; ln -sfn /etc $HOME/.config; ln -s /etc/passwd /tmp/passwd",
			`ls -d a ~/root ~/.config /tmp/passwd; test -s /etc/passwd || echo passwd; test -d /etc/systemd || echo etc`,
		},
		{
			"files where everybody may write", "default",
			"mkdir -p /run/lock/a/b; chmod 0 /run/lock/a/b; ln -s /etc /run/lock/etc; touch /dev/mqueue/q; id -u >/run/lock/uid",
			`find /run /var /dev -user runner -path '*lock*'; ls /run/lock/uid /dev/mqueue/q`,
		},
		{
			"a fork bomb and a port", "default",
			`( setsid bash -c 'b() { b | b & sleep 1; }; timeout 3 bash -c "$(declare -f b); b" ' </dev/null >/dev/null 2>&1 & )
perl -MIO::Socket::INET -e 'fork and exit; setpgrp; IO::Socket::INET->new(Listen => 5, LocalPort => 4711) or die; sleep 1000' </dev/null >/dev/null 2>&1 &
sleep 2; echo bombed`,
			`grep -i ' [0-9A-F]*:1267 ' /proc/net/tcp; pgrep -u runner -fa 4711 | grep -v pgrep`,
		},
		{
			"files and mounts of root", "rooted",
			`sudo -n mkdir -p deep/er && sudo -n touch deep/er/file && sudo -n chattr +i deep/er/file deep
sudo -n mkdir -p /mnt/kept bound && sudo -n touch /mnt/kept/file && sudo -n mount --bind /mnt/kept bound
sudo -n bash -c 'setsid sleep 12345 </dev/null >/dev/null 2>&1 &'`,
			`ls -d deep bound; test -e /mnt/kept/file || echo deleted across a mount; pgrep -fa 'sleep 12345' | grep -v pgrep`,
		},
		{
			"a process of root in a scope", "rooted",
			"sudo -n bash -c 'setsid systemd-run --quiet --scope sleep 12346 </dev/null >/dev/null 2>&1 & sleep 1'", "",
		},
	}
	s := newStage(t, func(_ types.Instance, s *system) {
		// Few enough that a fork bomb leaves this machine to the other tests.
		run(t, "sed", "-i", "s/^systemd: {user: runner}$/systemd: {user: runner, limits: {tasks: 512}}/", s.root+"/etc/remuda/agentd.yaml")
	})
	for n, tt := range tests {
		passed := t.Run(tt.name, func(t *testing.T) {
			s := s.as(t)
			first, second := strconv.Itoa(601+2*n), strconv.Itoa(602+2*n)
			i := s.provision(first, tt.pool)
			s.begin(first, job{"harm", tt.harm})
			s.over(first, "harm") // one that bombs may not get to its own end
			if got := s.release(first); got.GetPooledCount() != 1 {
				i.goesDown(within) // it is not trusted any more, which is as good
				_, why, _ := strings.Cut(i.lastJournal(), "powering off: ")
				t.Logf("the host was withdrawn: %.300s", why)
				return
			}
			if tt.left == "" {
				t.Fatal("the host was not withdrawn")
			}
			if again := s.provision(second, tt.pool); again.id != i.id {
				t.Fatalf("run %s got %s, not the pooled %s", second, again.id, i.id)
			}
			s.begin(second, job{"look", "( " + tt.left + " ) 2>/dev/null || true\necho looked"})
			found, _, _ := strings.Cut(s.succeeds(second, "look"), "looked")
			if found = strings.TrimSpace(found); found != "" {
				t.Errorf("the next run found:\n%s", found)
			}
			s.release(second)
		})
		if !passed {
			return // a host that is not clean would fail the next one too
		}
	}
}
