//go:build testhost

package host_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/awstest/imdstest"
)

// The units of a host's first and second run. The assignment between them is
// that of no run.
const (
	firstRunner  = "remuda-runner-1.service"
	secondRunner = "remuda-runner-3.service"
)

// life is a host from its boot to its end, with two runs.
type life struct {
	*stage
	host  *instance
	shown *shown
}

// TestLife is one story: each part goes on where the one before it ended. What
// an operator sees on the way is compared with the pages: see docs_test.go.
func TestLife(t *testing.T) {
	t.Parallel()
	l := &life{stage: newStage(t, nil), shown: newShown(false)}
	for _, part := range []struct {
		name string
		run  func()
	}{
		{"a run is assigned", l.runIsAssigned},
		{"a job sees nothing but itself", l.jobSeesNothingElse},
		{"agentd is killed in mid-job", l.agentIsKilled},
		{"the run is released", l.runIsReleased},
		{"the next run finds nothing", l.nextRunFindsNothing},
		{"the package is upgraded in mid-job", l.packageIsUpgraded},
		{"an interruption lets the job work on", l.interruptionOfABusyHost},
		{"an interruption ends an idle runner", l.interruptionOfAnIdleHost},
		{"a pooled host expires", l.pooledHostExpires},
	} {
		whole := l.stage
		passed := t.Run(part.name, func(t *testing.T) {
			l.stage = whole.as(t)
			part.run()
		})
		l.stage = whole
		if !passed {
			t.FailNow() // the rest of the story would make no sense
		}
	}
	l.shown.compare(t)
}

func (l *life) runIsAssigned() {
	l.host = l.provision("101", "spot")
	l.host.says("running: run 101 of " + repository)
	l.shown.see("status-registered", l.host.exec("systemctl", "status", "--no-pager", "--lines=0", "agentd"))
	if state := l.host.property("agentd.service", "ActiveState"); state != "active" {
		l.Errorf("agentd is %s", state)
	}
	if failed := l.host.units("--state=failed"); len(failed) != 0 {
		l.Errorf("units that failed: %v", failed)
	}
}

// whatJobsSee prints what must be closed to a job, and how it ends to try.
const whatJobsSee = `
echo "user=$(id -un) home=$HOME"
sed -n 's/^0::/cgroup=/p' /proc/self/cgroup
for to in 169.254.169.254 '[fd00:ec2::254]'; do
  curl -sS -m 3 -o /dev/null "http://$to/latest/meta-data/instance-id" 2>/dev/null && code=open || code=closed
  echo "metadata $to $code"
done
(exec 3<>/dev/tcp/169.254.169.254/80) 2>/dev/null && code=open || code=closed
echo "metadata tcp $code"
for path in /var/lib/remuda/state /run/remuda /run/systemd/private; do
  { ls "$path"/* || cat "$path"; } >/dev/null 2>&1 && code=open || code=closed
  echo "path $path $code"
done
busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager StopUnit ss agentd.service replace \
  >/dev/null 2>&1 && code=open || code=closed
echo "stopping agentd $code"
sudo -n true >/dev/null 2>&1 && code=open || code=closed
echo "sudo $code"
docker ps >/dev/null 2>&1 && code=open || code=closed
echo "docker $code"
env | grep -c -e ^AWS_ -e TOKEN= | sed 's/^/variables=/'
`

// leaveThings is a job that does not clean up.
const leaveThings = `
echo left >leftover
echo left >"$HOME/.leftover"; echo 'export PATH=/tmp/evil:$PATH' >>"$HOME/.bashrc"
for dir in /tmp /var/tmp /dev/shm; do echo left >"$dir/leftover"; done
echo '* * * * * touch /tmp/cron-was-here' | crontab - 2>/dev/null || echo no crontab
(setsid bash -c 'trap "" TERM HUP INT; exec -a lurker sleep 100000' </dev/null >/dev/null 2>&1 &)
echo planted
`

func (l *life) jobSeesNothingElse() {
	l.begin("101", job{"look", whatJobsSee}, job{"killed", leaveThings + gate("killed")})
	got := l.succeeds("101", "look")
	for _, want := range []string{
		"user=runner home=/home/runner", "cgroup=/remuda.slice/" + firstRunner,
		"metadata 169.254.169.254 closed", "metadata [fd00:ec2::254] closed", "metadata tcp closed",
		"path /var/lib/remuda/state closed", "path /run/remuda closed", "path /run/systemd/private closed",
		"stopping agentd closed", "sudo closed", "docker closed", "variables=0",
	} {
		if !strings.Contains(got, want+"\n") {
			l.Errorf("%q is not what the job saw:\n%s", want, got)
		}
	}
	for _, c := range l.host.metadata.Calls() {
		if c.Path == "/latest/meta-data/instance-id" && c.Status == 401 {
			l.Errorf("a job asked the metadata service: %+v", c)
		}
	}
}

// identity of a unit's life: it is another one after each start.
func (l *life) identity(unit string) string { return l.host.property(unit, "InvocationID") }

func (l *life) agentIsKilled() {
	l.running("101", "killed", "waiting at gate")
	l.host.says(`job "killed" (2nd job)`)
	l.shown.see("status-busy", l.host.exec("systemctl", "status", "--no-pager", "--lines=0", "agentd"))
	l.shown.see("status-runner", l.host.exec("systemctl", "status", "--no-pager", "--lines=0", firstRunner))
	before, killed := l.identity(firstRunner), l.identity("agentd.service")
	l.host.exec("kill", "-9", l.host.property("agentd.service", "MainPID"))
	eventually(l, within, "agentd is back", func() bool {
		return l.host.property("agentd.service", "ActiveState") == "active" && l.identity("agentd.service") != killed
	})
	l.host.says(`job "killed" (2nd job)`)
	if after := l.identity(firstRunner); after != before || before == "" {
		l.Errorf("the runner's unit was %q and is %q", before, after)
	}
	// Each restart of a unit is a failure to systemd 254 and newer, unless the unit says otherwise.
	if state := l.host.property("remuda-power-off.service", "ActiveState"); state != "inactive" {
		l.Errorf("one restart, and the unit that powers the host off is %s", state)
	}
	l.host.open("killed")
	l.succeeds("101", "killed")
}

func (l *life) runIsReleased() {
	if got := l.release("101"); got.GetPooledCount() != 1 {
		l.Fatalf("released: %v", got)
	}
	l.host.says("idle: clean, in the pool")
	l.shown.see("status-pooled", l.host.exec("systemctl", "status", "--no-pager", "--lines=0", "agentd"))
	if units := l.host.units("remuda-runner-*"); len(units) != 0 {
		l.Errorf("units of the run that is over: %v", units)
	}
	runners, err := l.github.Runners(l.ctx)
	check(l, err)
	if len(runners) != 0 {
		l.Errorf("registered: %+v", runners)
	}
}

// whatWasLeft looks for what leaveThings has left.
const whatWasLeft = `
ls -d leftover ~/.leftover /tmp/leftover /var/tmp/leftover /dev/shm/leftover /var/tmp/gate-* 2>/dev/null || true
crontab -l 2>/dev/null || true
grep -l evil ~/.bashrc || true
pgrep -a -u runner -f lurker || true
echo "path=$PATH"
echo looked
`

func (l *life) nextRunFindsNothing() {
	if again := l.provision("102", "spot"); again.id != l.host.id {
		l.Fatalf("run 102 got %s, not the pooled %s", again.id, l.host.id)
	}
	l.begin("102", job{"look", whatWasLeft}, job{"upgraded", gate("upgraded")}, job{"taken", gate("taken")})
	got := l.succeeds("102", "look")
	before, _, _ := strings.Cut(got, "looked")
	lines := strings.Split(strings.TrimSpace(before), "\n")
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "path=") || strings.Contains(lines[0], "evil") {
		l.Errorf("the next run found:\n%s", before)
	}
}

func (l *life) packageIsUpgraded() {
	l.running("102", "upgraded", "waiting at gate")
	before := l.identity(secondRunner)
	l.host.copyFile(l, filepath.Join(setting.dist, "1.0.1", "remuda-agentd.deb"), "opt/remuda-agentd.deb", 0o644)
	l.host.exec("dpkg", "-i", "/opt/remuda-agentd.deb")
	if got := l.host.exec("agentd", "version"); !strings.Contains(got, "1.0.1") {
		l.Errorf("after the upgrade it is %s", got)
	}
	l.host.says(`job "upgraded" (2nd job)`)
	if log := l.host.journal("--unit=agentd", "--grep=started"); !strings.Contains(log, "1.0.1") {
		l.Errorf("the new agentd did not start:\n%s", log)
	}
	if after := l.identity(secondRunner); after != before {
		l.Errorf("the runner's unit was %q and is %q", before, after)
	}
	l.host.open("upgraded")
	l.succeeds("102", "upgraded")
}

func (l *life) interruptionOfABusyHost() {
	l.running("102", "taken", "waiting at gate")
	l.host.metadata.Change(func(m *imdstest.Machine) { m.InterruptionAt = time.Now().Add(2 * time.Minute) })
	l.host.says("interrupted: EC2 takes this machine in 1m")
	l.shown.see("status-interrupted", l.host.exec("systemctl", "status", "--no-pager", "--lines=0", "agentd"))
	if s := l.host.status(); !strings.Contains(s, `job "taken" (3rd job) works on`) {
		l.Errorf("status: %s", s)
	}
	l.host.open("taken")
	l.succeeds("102", "taken")
	l.ends(l.host)
	// The machine may be gone before its agent has seen the end of its record.
	journal := l.host.words("agentd")
	if end := terminated.FindStringIndex(journal); end != nil {
		journal = journal[:end[0]]
	}
	l.shown.see("journal-agentd", journal)
}

// terminated matches the line by which an agent says that its host's record is terminated.
var terminated = regexp.MustCompile(`(?m)^.* record changed: .* state=terminated `)

// ends waits until a machine has gone down, and EC2 says so.
func (l *life) ends(i *instance) {
	l.Helper()
	select {
	case <-i.off:
	case <-time.After(within):
		l.Fatalf("%s is still up; status: %s", i.id, i.status())
	}
	eventually(l, within, i.id+" is terminated", func() bool { return l.account.state(i.id) == types.InstanceStateNameTerminated })
}

func (l *life) interruptionOfAnIdleHost() {
	host := l.provision("103", "spot")
	host.says("running: run 103")
	host.metadata.Change(func(m *imdstest.Machine) { m.InterruptionAt = time.Now().Add(2 * time.Minute) })
	eventually(l, within, "its runner is deregistered", func() bool {
		runners, err := l.github.Runners(l.ctx)
		check(l, err)
		return len(runners) == 0
	})
	l.ends(host)
}

func (l *life) pooledHostExpires() {
	host := l.provision("104", "brief")
	if got := l.release("104"); len(got.GetInstances()) != 1 {
		l.Fatalf("released: %v", got)
	}
	l.ends(host)
}
