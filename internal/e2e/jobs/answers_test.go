package jobs_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/remuda-ci/remuda/internal/testrun"
)

// whySays says what is wrong if `remuda why`, as it is built, does not print a text about a run, and about its job by the job's URL if GitHub has one.
func (s *stage) whySays(repository, run, text string) string {
	subjects := [][]string{{repository, run}}
	if on, err := s.GitHub.Run(s.ctx, run); err == nil && len(on.Jobs) > 0 {
		subjects = append(subjects, []string{fmt.Sprintf("https://github.com/%s/actions/runs/%s/job/%d", repository, run, on.Jobs[0].ID)})
	}
	for _, subject := range subjects {
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(s.ctx, filepath.Join(testrun.System.Dir(s.T), "remuda"), append([]string{"why", "--address", s.GRPCAddr}, subject...)...)
		cmd.Env = append(os.Environ(), "REMUDA_CONFIG="+filepath.Join(s.dir, "no-contexts.yaml"))
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil || !strings.Contains(stdout.String(), text) {
			return fmt.Sprintf("remuda why %s (%v) lacks %q:\n%s%s", strings.Join(subject, " "), err, text, stdout.String(), stderr.String())
		}
	}
	return ""
}

// row is a row of a table of the page: the text of each cell by the head of its column.
type row map[string]string

// hasRow says what is wrong if no table below a path has a row like this: its RUN and its WHY are the same, and every other cell has the text.
func (s *stage) hasRow(path string, want row) string {
	status, body, err := s.get(path)
	if err != nil {
		return err.Error()
	}
	doc, err := html.Parse(strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	var ofRun []row
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "tr" {
			continue
		}
		switch has := rowOf(n); {
		case has["RUN"] != want["RUN"]:
		case has.like(want):
			return ""
		default:
			ofRun = append(ofRun, has)
		}
	}
	return fmt.Sprintf("%s (status %d) has no row like %v; of the run it has %v", path, status, want, ofRun)
}

func rowOf(tr *html.Node) row {
	r := row{}
	for td := range tr.ChildNodes() {
		if i := slices.IndexFunc(td.Attr, func(a html.Attribute) bool { return a.Key == "data-head" }); i >= 0 {
			r[td.Attr[i].Val] = textOf(td)
		}
	}
	return r
}

func (r row) like(want row) bool {
	for head, text := range want {
		if r[head] != text && (head == "WHY" || !strings.Contains(r[head], text)) {
			return false
		}
	}
	return true
}

func textOf(of *html.Node) string {
	var b strings.Builder
	for n := range of.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}

// shows says what is wrong if a path does not have a text.
func (s *stage) shows(path, text string) string {
	status, body, err := s.get(path)
	if err != nil || !strings.Contains(body, text) {
		return fmt.Sprintf("%s (status %d, %v) lacks %q", path, status, err, text)
	}
	return ""
}

func (s *stage) get(path string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "http://"+s.HTTPAddr+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}
