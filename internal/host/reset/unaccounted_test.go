package reset

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Every process is accounted for.
func TestUnaccounted(t *testing.T) {
	t.Parallel()
	const (
		sshd    = "/system.slice/sshd.service"
		root    = "/user.slice/user-0.slice/"
		session = root + "session-3.scope"
	)
	units := standIn{
		"sshd.service": ofImage("sshd.service"), dockerUnit: {name: dockerUnit, fragment: "/etc/systemd/system/a.service", mainPID: 80},
		"remuda-clean-7.service": {name: "remuda-clean-7.service", transient: true, mainPID: 81},
		"old.service":            {name: "old.service", transient: true, mainPID: 82},
		"evil.service":           {name: "evil.service", transient: true, mainPID: 83},
		"user@0.service": {
			name: "user@0.service", fragment: "/etc/systemd/system/a.service", mainPID: 84, began: 5 * time.Second, ready: 5 * time.Second,
		},
		"getty@tty9.service": {
			name: "getty@tty9.service", fragment: "/etc/systemd/system/a.service", mainPID: 85, began: 5 * time.Second, ready: 5 * time.Second,
		},
		"old-getty.service": {
			name: "old-getty.service", fragment: "/etc/systemd/system/a.service", mainPID: 86, began: 2 * time.Second, ready: 2 * time.Second,
		},
	}
	sleep := func(t *testing.T, p Plan, pid int, group string) { p.process(t, pid, 1, group) }
	login := func(t *testing.T, p Plan) { // of an operator, with ssh
		p.process(t, 77, 1, sshd)
		p.process(t, 90, 77, session)
		p.process(t, 91, 90, session)
	}
	console := func(t *testing.T, p Plan, pid int, group string) { // a login as which a service has gone on
		p.process(t, pid, 1, group)
		p.process(t, 95, pid, group)
	}
	tests := map[string]struct {
		before, then func(t *testing.T, p Plan)
		// want are parts of the sentences, each of one.
		want []string
	}{
		"no process":                 {},
		"one from before":            {before: func(t *testing.T, p Plan) { sleep(t, p, 50, "/init.scope") }},
		"a child of one from before": {func(t *testing.T, p Plan) { sleep(t, p, 50, "/x.scope") }, func(t *testing.T, p Plan) { p.process(t, 51, 50, "/x.scope") }, nil},
		"a child of one from before, elsewhere": {
			func(t *testing.T, p Plan) { sleep(t, p, 50, "/x.scope") }, func(t *testing.T, p Plan) { p.process(t, 51, 50, "/y.scope") },
			[]string{`process 51 ("a) (b") of y.scope runs`},
		},
		"one with the pid of one from before": {
			func(t *testing.T, p Plan) { sleep(t, p, 50, "/x.scope") },
			func(t *testing.T, p Plan) {
				put(t, p.at("/proc/50/stat"), "50 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 501"+statRest+"\n")
			}, []string{"process 50"},
		},
		"of the kernel": {then: func(t *testing.T, p Plan) {
			sleep(t, p, 50, "/")
			put(t, p.at("/proc/50/stat"), "50 (kworker) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 500"+statRest+"\n")
		}},
		"dead": {then: func(t *testing.T, p Plan) {
			sleep(t, p, 50, "/init.scope")
			put(t, p.at("/proc/50/stat"), "50 (x) Z 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500"+statRest+"\n")
		}},
		"systemd":                  {then: func(t *testing.T, p Plan) { p.process(t, 1, 0, "/init.scope") }},
		"a child of systemd":       {then: func(t *testing.T, p Plan) { p.process(t, 1, 0, "/init.scope"); sleep(t, p, 50, "/init.scope") }, want: []string{"process 50"}},
		"in no unit":               {then: func(t *testing.T, p Plan) { sleep(t, p, 50, "/") }, want: []string{`process 50 ("a) (b") runs`}},
		"in a scope":               {then: func(t *testing.T, p Plan) { sleep(t, p, 50, "/system.slice/run-u5.scope") }, want: []string{"of run-u5.scope runs"}},
		"in a slice":               {then: func(t *testing.T, p Plan) { sleep(t, p, 50, "/evil.slice") }, want: []string{"process 50"}},
		"a container":              {then: func(t *testing.T, p Plan) { sleep(t, p, 50, "/docker/0123") }, want: []string{"of docker runs"}},
		"a service":                {then: func(t *testing.T, p Plan) { sleep(t, p, 77, sshd) }},
		"docker":                   {then: func(t *testing.T, p Plan) { sleep(t, p, 80, "/system.slice/docker.service") }},
		"moved into a service":     {then: func(t *testing.T, p Plan) { sleep(t, p, 50, sshd) }, want: []string{"of sshd.service runs"}},
		"the clean-up":             {then: func(t *testing.T, p Plan) { sleep(t, p, 81, "/remuda.slice/remuda-clean-7.service") }},
		"a unit of a call, before": {then: func(t *testing.T, p Plan) { sleep(t, p, 82, "/system.slice/old.service") }},
		"a unit of a call":         {then: func(t *testing.T, p Plan) { sleep(t, p, 83, "/system.slice/evil.service") }, want: []string{"of evil.service runs"}},
		"a login":                  {then: login},
		"a login with more": {then: func(t *testing.T, p Plan) { // a manager of the user, and what has left its terminal
			login(t, p)
			sleep(t, p, 84, root+"user@0.service/init.scope")
			sleep(t, p, 92, session)
		}},
		"what a login has left": {then: func(t *testing.T, p Plan) {
			sleep(t, p, 77, sshd)
			sleep(t, p, 92, session)
		}, want: []string{"of session-3.scope runs"}},
		"a manager without a login": {
			then: func(t *testing.T, p Plan) { sleep(t, p, 84, root+"user@0.service/init.scope") }, want: []string{"of user@0.service runs"},
		},
		"what has the place of a login": {then: func(t *testing.T, p Plan) { login(t, p); sleep(t, p, 50, "/system.slice/session-3.scope") }, want: []string{"process 50"}},
		"a login of another user":       {then: func(t *testing.T, p Plan) { login(t, p); sleep(t, p, 50, "/user.slice/user-5.slice/session-4.scope") }, want: []string{"process 50"}},
		"a login at a console": {then: func(t *testing.T, p Plan) {
			console(t, p, 85, session)
			sleep(t, p, 84, root+"user@0.service/init.scope")
		}},
		"a manager in the place of a login": {
			then: func(t *testing.T, p Plan) { console(t, p, 84, session) }, want: []string{"process 84", "process 95"},
		},
		"a console whose unit was made by a call": {
			then: func(t *testing.T, p Plan) { console(t, p, 83, session) }, want: []string{"process 83", "process 95"},
		},
		"a console that began before its process": {
			then: func(t *testing.T, p Plan) { console(t, p, 86, session) }, want: []string{"process 86", "process 95"},
		},
		"a console's process, elsewhere": {
			then: func(t *testing.T, p Plan) { console(t, p, 85, "/x.scope") }, want: []string{"process 85", "process 95"},
		},
		"a login of the user at a console": {
			then: func(t *testing.T, p Plan) { console(t, p, 85, "/user.slice/user-1001.slice/session-4.scope") }, want: []string{"process 85", "process 95"},
		},
		"a login of the user": {then: func(t *testing.T, p Plan) {
			p.process(t, 77, 1, sshd)
			p.process(t, 50, 77, "/user.slice/user-1001.slice/session-4.scope")
		}, want: []string{"process 50"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeHost(t)
			if test.before != nil {
				test.before(t, p)
			}
			check(t, Record(t.Context(), p))
			if test.then != nil {
				test.then(t, p)
			}
			base, err := p.readBaseline()
			check(t, err)
			var got []string
			found, _, err := p.imageUnits(units, base).findUnaccounted(t.Context(), base)
			check(t, err)
			for _, s := range found {
				got = append(got, s.sentence)
			}
			if !slices.EqualFunc(got, test.want, strings.Contains) {
				t.Errorf("strange %q, want %q", got, test.want)
			}
		})
	}
}

// A worker outlives the restart of its service, if it was accounted for before; one that only claims to be a worker is a finding.
func TestRestart(t *testing.T) {
	t.Parallel()
	const (
		sshd    = "/system.slice/sshd.service"
		session = "/user.slice/user-0.slice/session-3.scope"
	)
	getty := unit{name: "getty@tty9.service", fragment: "/etc/systemd/system/a.service", mainPID: 79, began: 5 * time.Second, ready: 5 * time.Second}
	units := standIn{"sshd.service": ofImage("sshd.service"), getty.name: getty}
	p := fakeHost(t)
	check(t, Record(t.Context(), p))
	p.process(t, 77, 1, sshd)
	p.process(t, 78, 77, sshd)
	p.process(t, 79, 1, session)
	look := func(t *testing.T) (sentences []string, known []procID) {
		base, err := p.readBaseline()
		check(t, err)
		d := &Findings{}
		known = p.checkUnaccounted(t.Context(), d, units, base)
		if len(d.All) == 0 {
			base.Processes = known
			check(t, p.write(base))
		}
		return d.All, known
	}
	sentences, known := look(t)
	equal(t, "findings", []string(nil), sentences)
	equal(t, "known", []procID{{77, 5 * time.Second}, {78, 5 * time.Second}}, known)

	check(t, os.RemoveAll(p.at("/proc/77")))
	check(t, os.RemoveAll(p.at("/proc/79")))
	p.process(t, 78, 1, sshd)
	sentences, _ = look(t)
	equal(t, "findings after the restart", []string(nil), sentences)

	p.process(t, 80, 1, sshd)
	p.process(t, 81, 1, session)
	synctest.Test(t, func(t *testing.T) { sentences, known = look(t) })
	if len(sentences) != 2 || !strings.Contains(sentences[0], "process 80") || !strings.Contains(sentences[1], "process 81") || known != nil {
		t.Errorf("findings %q and known %v, want them about 80 and 81, and none known", sentences, known)
	}
}

// A process that ends in time is not a finding. One that does not is a finding as soon as it has had its time.
func TestUnaccountedThatEnd(t *testing.T) {
	t.Parallel()
	const manager = "/user.slice/user-0.slice/user@0.service/init.scope"
	tests := map[string]struct {
		group    string
		lives    time.Duration // 0: for ever
		at       time.Duration // when the look is over, at most
		reported bool
	}{
		"no process":                    {"", 0, 0, false},
		"a helper":                      {"/init.scope", time.Second, 2 * time.Second, false},
		"a daemon":                      {"/x.scope", 0, settleLimit + time.Second, true},
		"the manager of a login's user": {manager, 10 * time.Second, 11 * time.Second, false},
		"a manager that stays":          {manager, 0, logoutLimit + time.Second, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeHost(t)
			check(t, Record(t.Context(), p))
			base, err := p.readBaseline()
			check(t, err)
			if test.group != "" {
				p.process(t, 50, 1, test.group)
			}
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				if test.lives > 0 {
					time.AfterFunc(test.lives, func() {
						ended := p.at("/ended") // complete before the check can read it
						put(t, ended, "50 (x) Z 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500"+statRest+"\n")
						check(t, os.Rename(ended, p.at("/proc/50/stat")))
					})
				}
				d := &Findings{}
				p.checkUnaccounted(t.Context(), d, standIn{}, base)
				if took := time.Since(start); (len(d.All) > 0) != test.reported || took > test.at {
					t.Errorf("findings %q after %s", d.All, took)
				}
			})
		})
	}
	t.Run("the check is over", func(t *testing.T) {
		t.Parallel()
		p := fakeHost(t)
		check(t, Record(t.Context(), p))
		p.process(t, 50, 1, "/x.scope")
		base, err := p.readBaseline()
		check(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d := &Findings{}
		p.checkUnaccounted(ctx, d, standIn{}, base)
		if len(d.All) != 1 || !strings.Contains(d.All[0], context.Canceled.Error()) {
			t.Errorf("findings %q", d.All)
		}
	})
}
