package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/firstcontact"
)

// TestVersion: no other flag is needed for it.
func TestVersion(t *testing.T) {
	var out bytes.Buffer
	code, err := run(t.Context(), []string{"--version"}, &out, io.Discard)
	if code != 0 || err != nil || !strings.HasPrefix(out.String(), "first-contact dev (commit ") {
		t.Errorf("exit code %d, %v: %s", code, err, &out)
	}
}

func TestWhatCannotBeRunExitsWith2(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token-that-is-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Nothing listens on port 1.
	empty := filepath.Join(t.TempDir(), "empty-token")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	two := filepath.Join(t.TempDir(), "two-lines")
	if err := os.WriteFile(two, []byte("a-token-that-is-secret\nanother-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	here := []string{"--repository", "acme/app", "--token-file", token, "--api-url", "http://127.0.0.1:1", "--runner", t.TempDir()}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no arguments":   {nil, "usage"},
		"no token":       {[]string{"--repository", "acme/app"}, "usage"},
		"no such token":  {[]string{"--repository", "acme/app", "--token-file", token + "s"}, "--token-file"},
		"an empty token": {[]string{"--repository", "acme/app", "--token-file", empty}, "--token-file: " + empty + " holds no token"},
		"two lines": {
			[]string{"--repository", "acme/app", "--token-file", two},
			"--token-file: " + two + " must hold the token alone, on one line without spaces",
		},
		"no scheme": {
			[]string{"--repository", "acme/app", "--token-file", token, "--api-url", "api.github.com"},
			`--api-url "api.github.com" is not a URL such as https://api.github.com`,
		},
		"another scheme": {
			[]string{"--repository", "acme/app", "--token-file", token, "--api-url", "localhost:7081/api/v3"},
			`--api-url "localhost:7081/api/v3" is not a URL such as https://api.github.com`,
		},
		"an unknown output": {append(here, "--output", "xml"), "usage"},
		"an unknown check":  {append(here, "--only", "labels,x"), `no check "x"`},
		"no runner":         {here, "not an unpacked actions/runner"},
		"no GitHub":         {here[:6], "cannot reach GitHub at http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused: check the address"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, progress bytes.Buffer
			code, err := run(t.Context(), c.args, &out, &progress)
			if code != findings.ExitFailed || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("exit code %d, %v; want %d and %s", code, err, findings.ExitFailed, c.want)
			}
			if err != nil && strings.Contains(err.Error()+progress.String(), "secret") {
				t.Errorf("the token is in %v and %s", err, &progress)
			}
		})
	}
}

// answers is a transport that gives each call the same answer.
type answers struct {
	status int
	body   string
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

// TestFirstAnswer has what answers the first call be something else than a GitHub that takes the token.
func TestFirstAnswer(t *testing.T) {
	const page = "<!DOCTYPE html>\n<html><body>Sign in to the proxy</body></html>"
	const notGitHub = `: the answer is not GitHub's, but "<!DOCTYPE html> <html><body>Sign in to the proxy</body></html>": check --api-url and the proxy`
	for name, c := range map[string]struct {
		answers
		want, not string
	}{
		"a page":          {answers{200, page}, notGitHub, "token cannot"},
		"a page with 404": {answers{404, page}, notGitHub, "no repository"},
		"a failure":       {answers{500, `{"message": "Server Error"}`}, "GitHub fails: POST /repos/acme/app/actions/runners/registration-token: 500 Internal Server Error: Server Error", "token cannot"},
		"no repository":   {answers{404, `{"message": "Not Found"}`}, "there is no repository acme/app, or the token may not see it: POST", "cannot register"},
		"a bad token":     {answers{401, `{"message": "Bad credentials"}`}, "the token cannot register a runner: POST", "repository acme/app"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a failure is tried again
				report, err := firstcontact.Run(t.Context(), firstcontact.Options{
					Repository: "acme/app", Token: "secret", WorkDir: t.TempDir(), Transport: c.answers,
				})
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.not) {
					t.Errorf("%v\nwant %s and not %s", err, c.want, c.not)
				}
				if len(report.Findings) == 0 {
					t.Error("no findings")
				}
				for _, f := range report.Findings {
					if f.Verdict != findings.Undecided {
						t.Errorf("%s is %s", f.Name, f.Verdict)
					}
				}
			})
		})
	}
}

// TestJSONWithoutGitHub has a program read the output whatever came of the run. Nothing listens on port 1.
func TestJSONWithoutGitHub(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--repository", "acme/app", "--token-file", token, "--api-url", "http://127.0.0.1:1", "--only", "labels,idle"}
	var out, progress bytes.Buffer
	if code, err := run(t.Context(), append(args, "--output", "json"), &out, &progress); code != findings.ExitFailed || err == nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	var report firstcontact.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	all := firstcontact.Assumptions()
	if len(report.Findings) != len(all["labels"])+len(all["idle"]) {
		t.Errorf("%d findings", len(report.Findings))
	}
	for _, f := range report.Findings {
		if f.Verdict != findings.Undecided || !strings.HasPrefix(f.Saw, "cannot reach GitHub at http://127.0.0.1:1") {
			t.Errorf("%+v", f)
		}
	}
	out.Reset()
	if _, err := run(t.Context(), args, &out, &progress); err == nil || out.Len() > 0 {
		t.Errorf("a table of nothing: %s%v", &out, err)
	}
}

// TestReadableTokenIsWarnedOf makes no call: nothing listens on port 1.
func TestReadableTokenIsWarnedOf(t *testing.T) {
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o644: true} {
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, []byte("a-token\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(token, mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		var out, progress bytes.Buffer
		_, _ = run(t.Context(), []string{"--repository", "acme/app", "--token-file", token, "--api-url", "http://127.0.0.1:1"}, &out, &progress)
		if got := strings.Contains(progress.String(), "warning: others can read the token: chmod 600 "+token+"\n"); got != warns {
			t.Errorf("a token of mode %s is warned of: %t, want %t", mode, got, warns)
		}
	}
}
