package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/remuda-ci/remuda/internal/cli"
	pages "github.com/remuda-ci/remuda/internal/page"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

var (
	inTable = regexp.MustCompile("`(remuda [^`]+)`")
	metrics = regexp.MustCompile("`(remuda_[a-z_]+)`")
)

// TestQuestionsOfADay: each command of the table in docs/operations.md is understood, flags and arguments, and nothing is called. Each RPC and
// each metric is one that there is, and so is each part of the page.
func TestQuestionsOfADay(t *testing.T) {
	_, text, found := strings.Cut(read(t, "../docs/operations.md"), "## Questions of a day")
	table, _, ends := strings.Cut(text, "\n## ")
	if !found || !ends {
		t.Fatal("the page has no questions")
	}
	var methods []string
	for i, all := 0, remudav1.File_remuda_v1_fleet_service_proto.Services().Get(0).Methods(); i < all.Len(); i++ {
		methods = append(methods, string(all.Get(i).Name()))
	}
	page, commands := read(t, "../docs/metrics.md"), 0
	parts := append([]string{"a run", "a host"}, pages.Menu...)
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[0], "-") || strings.Contains(row, "| RPC |") {
			continue
		}
		for _, m := range inTable.FindAllStringSubmatch(cells[1], -1) {
			commands++
			understood(t, m[1])
		}
		if method := strings.TrimSpace(cells[2]); method != "" && !slices.Contains(methods, method) {
			t.Errorf("there is no RPC %s", method)
		}
		if part := strings.TrimSpace(cells[3]); part != "" && !slices.Contains(parts, part) {
			t.Errorf("the page has no part %q", part)
		}
		for _, m := range metrics.FindAllStringSubmatch(cells[4], -1) {
			if !strings.Contains(page, "### `"+m[1]+"`\n") {
				t.Errorf("there is no metric %s", m[1])
			}
		}
	}
	if commands < 15 {
		t.Errorf("%d commands were found", commands)
	}
}

// TestTroubleshooting: the page names codes, metrics and commands that there are.
func TestTroubleshooting(t *testing.T) {
	text, page, interfaces := read(t, "../docs/troubleshooting.md"), read(t, "../docs/metrics.md"), read(t, "../docs/interfaces.md")
	commands, codes := inTable.FindAllStringSubmatch(text, -1), 0
	for _, m := range commands {
		if m[1] != "remuda why" { // of what, the sentence says
			understood(t, m[1])
		}
	}
	for _, m := range metrics.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(page, "### `"+m[1]+"`\n") {
			t.Errorf("there is no metric %s", m[1])
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| ((?:`[a-z_]+`(?:, )?)+) \\|").FindAllStringSubmatch(text, -1) {
		for code := range strings.SplitSeq(row[1], ", ") {
			if codes++; !strings.Contains(interfaces, code) {
				t.Errorf("there is no code %s", code)
			}
		}
	}
	if len(commands) < 8 || codes < 30 {
		t.Errorf("%d commands and %d codes were found", len(commands), codes)
	}
}

// understood checks a command line as cobra does before it runs one.
func understood(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)[1:]
	command, rest, err := newRoot(&cli.App{}).Find(words)
	if err == nil {
		err = command.ParseFlags(rest)
	}
	if err == nil {
		err = command.ValidateArgs(command.Flags().Args())
	}
	if err != nil || !command.Runnable() {
		t.Errorf("%s: %v", line, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
