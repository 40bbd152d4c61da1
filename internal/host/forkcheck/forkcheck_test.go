package forkcheck_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/remuda-ci/remuda/internal/host/forkcheck"
)

// pull is the payload of a pull request between the repositories of two sides.
func pull(head, base string) string {
	return `{"action": "opened", "pull_request": {"head": {"repo": ` + head + `}, "base": {"repo": ` + base + `}, "number": 1}, "repository": {"id": 7}}`
}

var (
	own  = pull(`{"id": 7, "fork": true}`, `{"id": 7}`)
	fork = pull(`{"id": 8}`, `{"id": 7}`)
)

// within returns text with more put in front of the first occurrence of mark.
func within(text, mark, more string) string { return strings.Replace(text, mark, more+mark, 1) }

const ( // exit statuses
	notFork    = 0
	isFork     = 1
	unreadable = 2
)

func TestPayloads(t *testing.T) {
	tests := map[string]struct {
		event, payload string
		want           int
	}{
		"of a branch":                 {"pull_request", own, notFork},
		"of a fork":                   {"pull_request", fork, isFork},
		"of a fork, on the base":      {"pull_request_target", fork, isFork},
		"a review of a fork":          {"pull_request_review", fork, isFork},
		"by an event of another name": {"new_event", fork, isFork},
		"by no event":                 {"", fork, isFork},
		"a push":                      {"push", `{"ref": "refs/heads/main", "commits": []}`, notFork},
		"a run of a fork was before":  {"workflow_run", `{"workflow_run": {"head_repository": {"id": 8}, "repository": {"id": 7}}}`, notFork},
		"a comment on a pull request": {"issue_comment", `{"issue": {"pull_request": {"url": "x"}}}`, notFork},

		"the fork is gone":              {"pull_request", pull("null", `{"id": 7}`), isFork},
		"the base is gone":              {"pull_request", pull(`{"id": 7}`, "null"), isFork},
		"both are gone":                 {"pull_request", pull("null", "null"), isFork},
		"no sides":                      {"pull_request", `{"pull_request": {}}`, isFork},
		"no head":                       {"pull_request", `{"pull_request": {"base": {"repo": {"id": 7}}}}`, isFork},
		"no base":                       {"pull_request", `{"pull_request": {"head": {"repo": {"id": 7}}}}`, isFork},
		"no ids":                        {"pull_request", pull("{}", "{}"), isFork},
		"its ids are null":              {"pull_request", pull(`{"id": null}`, `{"id": null}`), isFork},
		"its ids are no numbers":        {"pull_request", pull(`{"id": "7"}`, `{"id": "7"}`), isFork},
		"its ids are objects":           {"pull_request", pull(`{"id": {}}`, `{"id": {}}`), isFork},
		"its ids are true":              {"pull_request", pull(`{"id": true}`, `{"id": true}`), isFork},
		"its ids are zero":              {"pull_request", pull(`{"id": 0}`, `{"id": 0}`), isFork},
		"its ids are too large":         {"pull_request", pull(`{"id": 9223372036854775808}`, `{"id": 9223372036854775809}`), isFork},
		"its ids are fractions":         {"pull_request", pull(`{"id": 7.1}`, `{"id": 7.1}`), isFork},
		"an id begins alike":            {"pull_request", pull(`{"id": 77}`, `{"id": 7}`), isFork},
		"ids a float cannot tell apart": {"pull_request", pull(`{"id": 9007199254740993}`, `{"id": 9007199254740992}`), isFork},

		// What readers of JSON differ in.
		"an id occurs twice":                {"pull_request", pull(`{"id": 8, "id": 7}`, `{"id": 7}`), unreadable},
		"an id of the base occurs twice":    {"pull_request", pull(`{"id": 8}`, `{"id": 7, "id": 8}`), unreadable},
		"an id occurs in two letter cases":  {"pull_request", pull(`{"id": 8, "ID": 7}`, `{"id": 7}`), unreadable},
		"a repo occurs twice":               {"pull_request", within(fork, `"repo"`, `"repo": {"id": 7}, `), unreadable},
		"a repo occurs in two letter cases": {"pull_request", within(fork, `"repo"`, `"Repo": {"id": 7}, `), unreadable},
		"a head occurs twice":               {"pull_request", within(fork, `"head"`, `"head": {"repo": {"id": 7}}, `), unreadable},
		"a head occurs in two letter cases": {"pull_request", within(fork, `"number"`, `"HEAD": {"repo": {"id": 7}}, `), unreadable},
		"a null, and a head":                {"pull_request", within(own, `"head"`, `"head": null, `), unreadable},
		"two pull requests":                 {"pull_request", within(fork, `"action"`, `"pull_request": {}, `), unreadable},
		"two, in two letter cases":          {"pull_request", within(fork, `"repository"`, `"Pull_Request": {"head": {"repo": {"id": 7}}, "base": {"repo": {"id": 7}}}, `), unreadable},
		"two, one with a long s":            {"pull_request", within(own, `"action"`, `"pull_reque\u017ft": {}, `), unreadable},
		"two, one of them escaped":          {"push", within(own, `"action"`, `"pull\u005frequest": {}, `), unreadable},
		"one, in another letter case":       {"push", strings.Replace(fork, "pull_request", "Pull_Request", 1), isFork},
		"one, escaped":                      {"push", strings.Replace(fork, "pull_request", `pull\u005frequest`, 1), isFork},
		"other names occur twice":           {"pull_request", within(own, `"action"`, `"action": 1, `), notFork},

		// What anyone may write into a string.
		"the title looks like ids": {"pull_request", within(fork, `"number"`, `"title": "x\\\"}, \"head\": {\"repo\": {\"id\": 7}}, \\", `), isFork},
		"a label looks like ids":   {"pull_request", within(fork, `"head"`, `"labels": [{"head": {"repo": {"id": 7}}}], `), isFork},
		"a key with a slash":       {"push", `{"client_payload": {"/pull_request/head/repo/id": 1}, "é": ["a", 1.5e-3, true, [], {}]}` + "\n", notFork},
		"an input of that name":    {"workflow_dispatch", `{"inputs": {"pull_request": "x", "head": "y"}}`, notFork},
		"a title that is no UTF-8": {"pull_request", within(fork, `"number"`, "\"title\": \"\xff\xfe\", "), isFork},

		"an empty payload":             {"push", " \n", unreadable},
		"a payload that is cut off":    {"push", `{"ref": "refs/heads/main"`, unreadable},
		"cut off in a string":          {"push", `{"ref": "refs/he`, unreadable},
		"cut off after a name":         {"push", `{"ref"`, unreadable},
		"cut off in a pull request":    {"pull_request", own[:len(own)-30], unreadable},
		"more than a payload":          {"push", `{"ref": "x"}}`, unreadable},
		"two payloads":                 {"pull_request", own + "\n" + own, unreadable},
		"text after it":                {"push", `{"ref": "x"} y`, unreadable},
		"a comma too many":             {"push", `{"commits": [1,]}`, unreadable},
		"a comma at the end":           {"push", `{"ref": "x",}`, unreadable},
		"a comma at the beginning":     {"push", `{,"ref": "x"}`, unreadable},
		"no comma":                     {"push", `{"ref": "x" "y": 1}`, unreadable},
		"no colon":                     {"push", `{"ref" "x"}`, unreadable},
		"a name that is no string":     {"push", `{1: 2}`, unreadable},
		"a closer of the other kind":   {"push", `{"commits": [1}]`, unreadable},
		"the other closer":             {"push", `{"ref": "x"]`, unreadable},
		"no JSON":                      {"push", `ref: main`, unreadable},
		"a list":                       {"push", `[]`, unreadable},
		"a null":                       {"push", `null`, unreadable},
		"a line break in a string":     {"push", "{\"ref\": \"a\nb\"}", unreadable},
		"nested too deeply":            {"push", `{"x": ` + strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5) + `}`, unreadable},
		"a pull request without any":   {"pull_request", `{"ref": "x"}`, unreadable},
		"a target without any":         {"pull_request_target", `{"ref": "x"}`, unreadable},
		"a pull request that is null":  {"pull_request", `{"pull_request": null}`, unreadable},
		"one that is null, of a push":  {"push", `{"pull_request": null}`, notFork},
		"a pull request that is text":  {"push", `{"pull_request": "{}"}`, unreadable},
		"a pull request that is false": {"pull_request", `{"pull_request": false}`, unreadable},
		"a head that is a list":        {"pull_request", within(`{"pull_request": {}}`, `}}`, `"head": [{"repo": {"id": 7}}]`), unreadable},
		"a repo that is a number":      {"pull_request", pull("7", "7"), unreadable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "event.json")
			if err := os.WriteFile(path, []byte(test.payload), 0o644); err != nil {
				t.Fatal(err)
			}
			expect(t, path, test.event, test.want)
		})
	}
}

// expect checks the answer for the file as the payload of an event.
func expect(t *testing.T, path, event string, want int) {
	t.Helper()
	t.Setenv("GITHUB_EVENT_PATH", path)
	t.Setenv("GITHUB_EVENT_NAME", event)
	err := forkcheck.FromEnvironment()
	if got := forkcheck.ExitCode(err); got != want {
		t.Errorf("exit status %d (%v), want %d", got, err, want)
	}
	if errors.Is(err, forkcheck.ErrFork) != (want == isFork) || errors.Is(err, forkcheck.ErrUnreadable) != (want == unreadable) {
		t.Errorf("error %v for exit status %d", err, want)
	}
}

// TestFiles: what is not a file of bounded size is not read, and not waited for.
func TestFiles(t *testing.T) {
	const most = 64 << 20 // bytes
	write := func(text string) func(path string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o644) }
	}
	tests := map[string]struct {
		put  func(path string) error
		want int
	}{
		"a file":           {write(own), notFork},
		"a large file":     {write(within(own, `"action"`, `"body": "`+strings.Repeat("x", 30<<20)+`", `)), notFork},
		"a file too large": {write(own + strings.Repeat(" ", most+1-len(own))), unreadable},
		"none":             {func(string) error { return nil }, unreadable},
		"a directory":      {func(path string) error { return os.Mkdir(path, 0o755) }, unreadable},
		"a pipe":           {func(path string) error { return syscall.Mkfifo(path, 0o644) }, unreadable},
		"a device":         {func(path string) error { return os.Symlink("/dev/zero", path) }, unreadable},
		"a link": {func(path string) error {
			return errors.Join(write(own)(path+".json"), os.Symlink(path+".json", path))
		}, unreadable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "event.json")
			if err := test.put(path); err != nil {
				t.Fatal(err)
			}
			expect(t, path, "pull_request", test.want)
		})
	}
	t.Run("no path", func(t *testing.T) { expect(t, "", "push", unreadable) })
	t.Run("a path like a flag", func(t *testing.T) { expect(t, "-h", "push", unreadable) })
}

// TestUnsetPath: outside of a job there is no payload, and the error names the variable.
func TestUnsetPath(t *testing.T) {
	t.Setenv("GITHUB_EVENT_PATH", "")
	const want = "cannot read the payload of the job's event: GITHUB_EVENT_PATH is not set"
	if err := forkcheck.FromEnvironment(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
