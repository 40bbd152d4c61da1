package cli_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/testrun"
)

var update = flag.Bool("update", false, "write the session in docs/cli.md as it is now")

const page = "../../../docs/cli.md"

// turn is a command of a session with what it printed.
type turn struct{ command, output string }

// TestSession: the session of docs/cli.md, on a controld of its own, prints what the page says, up to ids and times.
func TestSession(t *testing.T) {
	s := newStage(t)
	before, session, after := readSession(t, page)
	actual := map[string]string{} // ids of the page and those of this run
	var got []turn
	for _, want := range session {
		command := want.command
		for id, now := range actual {
			command = strings.ReplaceAll(command, id, now)
		}
		output := stateDir.ReplaceAllString(s.inShell(command), ".state/dev/")
		pair(hostID.FindAllString(want.output, -1), hostID.FindAllString(output, -1), actual)
		if diff := cmp.Diff(stable(want.output), stable(output)); diff != "" && !*update {
			t.Errorf("%s (-page +now):\n%s", want.command, diff)
		}
		got = append(got, turn{command, output})
	}
	if *update {
		writeSession(t, page, s.GRPCAddr, before, got, after)
	}
}

// inShell is what a person sees of a command: both streams.
func (s *stage) inShell(command string) string {
	s.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(s.ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "REMUDA_CONFIG="+s.config, "TZ=UTC", "PATH="+testrun.System.Dir(s.T)+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = &out, &out
	s.code(cmd.Run())
	return out.String()
}

const begin, end = "```console\n", "```\n"

func readSession(t *testing.T, page string) (before string, session []turn, after string) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	text, after, ended := strings.Cut(rest, "\n"+end)
	if !found || !ended {
		t.Fatal("the page has no session")
	}
	for line := range strings.Lines(text + "\n") {
		if command, is := strings.CutPrefix(line, "$ "); is {
			session = append(session, turn{command: strings.TrimSpace(command)})
		} else {
			session[len(session)-1].output += line
		}
	}
	return before, session, after
}

func writeSession(t *testing.T, page, address, before string, session []turn, after string) {
	t.Helper()
	text := before + begin
	for _, turn := range session {
		text += "$ " + turn.command + "\n" + turn.output
	}
	// A column of a table stays as wide as it was laid out.
	const shown = "127.0.0.1:7443"
	text = strings.ReplaceAll(text, address+"  ", shown+strings.Repeat(" ", max(0, len(address)-len(shown)))+"  ")
	text = strings.ReplaceAll(text, address, shown)
	if err := os.WriteFile(page, []byte(text+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pair learns which host of this run is which of the page, by their order in one output.
func pair(page, now []string, pairs map[string]string) {
	for i := range min(len(page), len(now)) {
		if pairs[page[i]] == "" {
			pairs[page[i]] = now[i]
		}
	}
}

// stateDir is the directory of a controld dev of these tests. The page has that of make run.
var stateDir = regexp.MustCompile(`/\S+/state/`)

var (
	hostID  = regexp.MustCompile(`\bi-[0-9a-f]{17}\b`)
	changes = []struct {
		pattern *regexp.Regexp
		as      string
	}{
		{hostID, "HOST"},
		{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "REQUEST"},
		{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
		{regexp.MustCompile(`\b(\d\d-\d\d )?\d\d:\d\d:\d\dZ?`), "CLOCK"},
		{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
		{regexp.MustCompile(`\b(\d+(\.\d+)?(d|h|m|s|ms|µs))+\b`), "SPAN"},
		{regexp.MustCompile(`\bhot\b`), "pooled"}, // a pooled host registers ahead of need when it comes to it
		{regexp.MustCompile(`\b\d+\.\d{2,4}\b`), "DOLLARS"},
		{regexp.MustCompile(`\(commit .*\)`), "(BUILD)"},
		{regexp.MustCompile(` +`), " "},
	}
	// passing are lines that are there or not, as it happens: progress, and looks of a sweep.
	passing = regexp.MustCompile(`^SPAN waiting|\bkeep\b|\bstand by\b`)
)

// stable is an output without what differs from run to run. What happened at times is put in order, since two hosts come
// in any.
func stable(text string) []string {
	var lines, timed []string
	for line := range strings.Lines(text) {
		for _, c := range changes {
			line = c.pattern.ReplaceAllString(line, c.as)
		}
		switch line = strings.TrimSpace(line); {
		case passing.MatchString(line):
		case strings.HasPrefix(line, "CLOCK"), strings.Contains(line, "DOLLARS"): // which come in the order of their times, or of what they cost
			timed = append(timed, line)
		default:
			lines = append(lines, line)
		}
	}
	slices.Sort(timed)
	return append(lines, timed...)
}
