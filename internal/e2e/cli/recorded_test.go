package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/awstest/pinned"
	"github.com/remuda-ci/remuda/internal/testrun"
)

// recording is a page with a session of every command.
const recording = "../../../docs/cli-session.md"

var terminalTools = pinned.Tools{Script: "scripts/terminal-tools", Files: []string{"scripts/run"}}

// tmux is a terminal with a window for each program.
type tmux struct {
	*stage
	program string
	environ []string
	address string // of the controld of make run
}

// newTmux starts a server of tmux of its own, with a shell.
func newTmux(s *stage) *tmux {
	s.Helper()
	tools, err := terminalTools.Install()
	if err != nil {
		s.Fatal(err)
	}
	m := &tmux{stage: s, program: filepath.Join(tools.Dir, "tmux")}
	m.environ = append(os.Environ(), "TMUX=", "TMUX_TMPDIR="+s.TempDir(), "TERM=xterm-256color", "LANG=C.UTF-8", "TZ=UTC", "NO_COLOR=1",
		"REMUDA_CONFIG="+s.config, "PATH="+testrun.System.Dir(s.T)+":"+os.Getenv("PATH"))
	m.do("-f", "/dev/null", "new-session", "-d", "-c", s.TempDir(), "-x", "160", "-y", "50", "-n", "person", "PS1='$ ' exec bash --norc --noprofile")
	s.Cleanup(func() { m.do("kill-server") })
	m.until("person", func(screen string) bool { return screen == "$" })
	return m
}

func (m *tmux) do(args ...string) string {
	m.Helper()
	cmd := exec.Command(m.program, args...)
	cmd.Env = m.environ
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// screen is what a window shows and has shown, without blank lines at its end.
func (m *tmux) screen(window string) string {
	m.Helper()
	return strings.TrimRight(m.do("capture-pane", "-p", "-J", "-S", "-", "-t", window), " \n")
}

// until waits until a window shows a text, and returns all of it.
func (m *tmux) until(window string, shown func(screen string) bool) string {
	m.Helper()
	for {
		screen := m.screen(window)
		if shown(screen) {
			return screen
		}
		select {
		case <-m.ctx.Done():
			m.Fatalf("the window %s shows\n%s", window, screen)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// types has a person type a command, and perhaps keys once it shows a text. It returns what was printed.
func (m *tmux) types(command, shows, keys string) string {
	m.Helper()
	m.do("send-keys", "-R", "-t", "person") // an empty screen
	m.do("clear-history", "-t", "person")
	m.do("send-keys", "-t", "person", "Enter") // for a prompt on it: what is typed before one is echoed twice
	m.until("person", func(screen string) bool { return strings.TrimSpace(screen) == "$" })
	m.do("send-keys", "-t", "person", "-l", command)
	m.do("send-keys", "-t", "person", "Enter")
	screen := ""
	if keys != "" {
		screen = m.until("person", func(screen string) bool { return strings.Contains(screen, shows) && !strings.HasSuffix(screen, "\n$") })
		m.do("send-keys", "-t", "person", keys)
	}
	after := m.until("person", func(screen string) bool { return strings.Contains(screen, command) && strings.HasSuffix(screen, "\n$") })
	printed := screen // of a program that had the whole terminal, and gave it back
	if _, rest, found := strings.Cut(after, command+"\n"); screen == "" || strings.TrimSuffix(rest, "$") != "" {
		if !found {
			m.Fatalf("the terminal shows\n%s\nafter %s", after, command)
		}
		printed = rest
	}
	lines := strings.Split(strings.TrimSuffix(strings.TrimPrefix(printed, "\n"), "$"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return blank.ReplaceAllString(strings.TrimRight(strings.Join(lines, "\n"), "\n")+"\n", "\n\n")
}

// blank is the middle of a screen that is not full.
var blank = regexp.MustCompile(`\n{3,}`)

// keysOf are the keys that a command needs once it shows a text.
var keysOf = map[string][2]string{
	"remuda top": {"acme/shop", "q"},
	"remuda provision acme/shop/42 --request-id nightly --timeout 1m": {"waiting for hosts", "C-c"},
}

// makeRun starts what make run starts, in a window, on addresses of its own.
func (m *tmux) makeRun() {
	m.Helper()
	dir := m.TempDir()
	script, err := os.ReadFile("../../../scripts/run")
	if err != nil {
		m.Fatal(err)
	}
	for _, sub := range []string{"scripts", "bin"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			m.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "scripts/run"), script, 0o700); err != nil {
		m.Fatal(err)
	}
	for _, name := range []string{"controld", "agentd", "remuda", "runner"} {
		if _, err := os.Stat(filepath.Join(testrun.System.Dir(m.T), name)); err != nil {
			continue
		}
		if err := os.Symlink(filepath.Join(testrun.System.Dir(m.T), name), filepath.Join(dir, "bin", name)); err != nil {
			m.Fatal(err)
		}
	}
	config := filepath.Join(dir, "controld.yaml")
	if err := os.WriteFile(config, []byte("scale_down: {}\nservices: {render: {}}\nlimits: {budgets: [{owner: acme, dollars_per_month: 500}]}\n"+
		"pools: {build: {caches: [{name: go, paths: [~/go/pkg/mod], size_mib: 64}]}}\n"), 0o600); err != nil {
		m.Fatal(err)
	}
	m.do("new-window", "-d", "-n", "run", fmt.Sprintf("exec %s/scripts/run --boot-time 1s --state-dir %s/state --config %s --grpc-addr 127.0.0.1:0 --http-addr 127.0.0.1:0 --github-addr 127.0.0.1:0", dir, dir, config))
	screen := m.until("run", func(screen string) bool { return strings.Contains(screen, "In a browser: http://") })
	m.Cleanup(func() {
		m.do("send-keys", "-t", "run", "C-c")
		for strings.Contains(m.do("list-windows", "-F", "#{window_name}"), "run") && m.ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
	})
	address := regexp.MustCompile(`grpc=(\S+)`).FindStringSubmatch(screen)
	if address == nil {
		m.Fatalf("make run says\n%s", screen)
	}
	m.address = address[1]
}

// TestRecordedSession: every command of remuda, typed into a terminal beside make run, prints what the recording has, up to ids and times.
func TestRecordedSession(t *testing.T) {
	s := newPerson(t)
	m := newTmux(s)
	m.makeRun()
	before, session, after := readSession(t, recording)
	actual := map[string]string{} // ids of the recording and those of this run
	var got []turn
	for _, want := range session {
		command := strings.ReplaceAll(want.command, "127.0.0.1:7443", m.address)
		for id, now := range actual {
			command = strings.ReplaceAll(command, id, now)
		}
		keys := keysOf[want.command]
		output := strings.ReplaceAll(m.types(command, keys[0], keys[1]), m.config, "~/.config/remuda/config.yaml")
		output = stateDir.ReplaceAllString(output, ".state/dev/")
		pair(hostID.FindAllString(want.output, -1), hostID.FindAllString(output, -1), actual)
		if diff := cmp.Diff(stable(want.output), stable(output)); diff != "" && !*update {
			t.Errorf("%s (-recording +now):\n%s", want.command, diff)
		}
		got = append(got, turn{command, output})
	}
	if *update {
		writeSession(t, recording, m.address, before, got, after)
	}
	for _, command := range commandsOf(s) {
		if !shows(got, "remuda "+command, "") {
			t.Errorf("the recording has no remuda %s", command)
		}
	}
	for _, command := range []string{"remuda waiting", "remuda why acme/shop/42"} {
		if !shows(got, command, "paused") {
			t.Errorf("the recording of %s shows nothing that waits for a pool that is paused", command)
		}
	}
}

// shows reports whether a session has a command, perhaps with more arguments, whose output has a part.
func shows(session []turn, command, part string) bool {
	return slices.ContainsFunc(session, func(t turn) bool {
		return strings.HasPrefix(t.command+" ", command+" ") && strings.Contains(t.output, part)
	})
}

// commandsOf are the commands that remuda has. One with subcommands does nothing by itself, and those stand for it.
func commandsOf(s *stage) (names []string) {
	for _, name := range listed(s.must("help")) {
		_, subcommands, _ := strings.Cut(s.must(name, "--help"), "Available Commands:\n")
		if name == "help" || subcommands == "" {
			names = append(names, name)
			continue
		}
		for _, sub := range listed(subcommands) {
			names = append(names, name+" "+sub)
		}
	}
	if len(names) < 30 {
		s.Errorf("remuda has the commands %v", names)
	}
	return names
}

// listed are the commands that a help lists.
func listed(help string) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`).FindAllStringSubmatch(help, -1) {
		names = append(names, m[1])
	}
	return names
}
