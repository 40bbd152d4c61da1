package systemd_test

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/testrun"
)

const (
	agentFailed = `echo failed`
	agentBack   = `echo active`
	noSystemd   = `exit 1`
)

// TestPowerOffWhenIdle runs the script among stand-ins: systemctl, sleep, by
// which time passes, and a /proc.
func TestPowerOffWhenIdle(t *testing.T) {
	testrun.Fresh() // go test does not see the script that is run
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	const another = "4294967294"
	for name, test := range map[string]struct {
		user    string   // whose workers count; by default mine
		owner   string   // of the worker; none: there is no worker
		program string   // of the worker, and its arguments
		ends    string   // the number of the sleep in which the worker ends
		agent   string   // what systemctl show does
		refuses []string // the calls of systemctl that fail
		limit   string   // seconds
		want    []string
	}{
		"no job":                   {agent: agentFailed, want: []string{"poweroff"}},
		"systemd does not answer":  {agent: noSystemd, want: []string{"poweroff"}},
		"after a job":              {agent: agentFailed, owner: me.Uid, ends: "3", want: []string{"slept 3", "poweroff"}},
		"a script is a worker too": {agent: agentFailed, owner: me.Uid, program: "/bin/sh /r/Runner.Worker x", ends: "3", want: []string{"slept 3", "poweroff"}},
		"a job that does not end":  {agent: agentFailed, owner: me.Uid, limit: "0", want: []string{"poweroff"}},
		"a worker of another user": {agent: agentFailed, owner: another, want: []string{"poweroff"}},
		"a user that is gone":      {agent: agentFailed, user: "no-such-user", owner: another, ends: "3", want: []string{"slept 3", "poweroff"}},
		"another program":          {agent: agentFailed, owner: me.Uid, program: "/r/Runner.Listener run", want: []string{"poweroff"}},
		"the agent is back":        {agent: agentBack, want: nil},
		"systemd refuses":          {agent: agentFailed, refuses: []string{"poweroff"}, want: []string{"poweroff", "poweroff --force"}},
		"systemd refuses twice": {agent: agentFailed, refuses: []string{"poweroff", "poweroff --force"},
			want: []string{"poweroff", "poweroff --force", "poweroff --force --force"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			told, proc := filepath.Join(dir, "told"), filepath.Join(dir, "proc")
			write(t, told, "", 0o644)
			write(t, filepath.Join(dir, "refused"), strings.Join(test.refuses, "\n"), 0o644)
			if test.owner != "" {
				program := test.program
				if program == "" {
					program = "/r/bin/Runner.Worker spawnclient 1 2"
				}
				write(t, filepath.Join(proc, "7/cmdline"), strings.ReplaceAll(program, " ", "\x00")+"\x00", 0o644)
				write(t, filepath.Join(proc, "7/status"), "Name:\tRunner.Worker\nUid:\t"+test.owner+"\t0\t0\t0\n", 0o644)
			}
			write(t, filepath.Join(dir, "sleep"), `#!/bin/sh
echo x >>`+dir+`/slept
n=$(($(wc -l <`+dir+`/slept)))
if [ "$n" = "`+test.ends+`" ]; then rm -r `+proc+`/7; echo "slept $n" >>`+told+`; fi
[ "$n" -lt 9 ] || { echo "slept for ever" >>`+told+`; kill -9 $PPID; }
`, 0o755)
			write(t, filepath.Join(dir, "systemctl"), `#!/bin/sh
if [ "$1" = show ]; then `+test.agent+`; exit; fi
echo "$*" >>`+told+`
if grep -qxF -e "$*" `+dir+`/refused; then exit 1; fi
`, 0o755)
			who, limit := test.user, test.limit
			if who == "" {
				who = me.Username
			}
			if limit == "" {
				limit = "21600"
			}
			cmd := exec.CommandContext(t.Context(), "./power-off-when-idle", who, limit, proc)
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			var got []string
			for line := range strings.Lines(read(t, told)) {
				got = append(got, strings.TrimSpace(line))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("what happens (-want +got):\n%s\n%s", diff, out)
			}
		})
	}
}
