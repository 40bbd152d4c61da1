package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// How often config.sh makes a call that fails, except one that is answered 404, and the longest pause in between. actions/runner 2.336
// waits 1 to 5 s (src/Runner.Common/RunnerDotcomServer.cs:167-175); RetryPauseVariable sets it to a Go duration for that.
const (
	attempts           = 3
	retryPause         = 100 * time.Millisecond
	RetryPauseVariable = "STANDIN_RUNNER_RETRY_PAUSE"
)

// gitHub makes the calls of config.sh. They go to the private protocol, and are named in what is printed as those of actions/runner.
type gitHub struct {
	*client
	url    string // of the repository or organization
	errOut io.Writer
}

func newGitHub(url, secret string, errOut io.Writer) (*gitHub, error) {
	server, err := serverOf(url)
	if err != nil {
		return nil, err
	}
	return &gitHub{newClient(server, secret), url, errOut}, nil
}

// api is the address of a call of GitHub's, as on a server of its own.
func (g *gitHub) api(path string) string { return g.base + "/api/v3/" + path }

// runners is the address of the runners of the repository or organization
// (src/Runner.Common/RunnerDotcomServer.cs:179-233).
func (g *gitHub) runners() string {
	u, _ := url.Parse(g.url) // serverOf has read it
	scope := strings.Trim(u.Path, "/")
	if strings.Contains(scope, "/") {
		return g.api("repos/" + scope + "/actions/runners")
	}
	return g.api("orgs/" + scope + "/actions/runners")
}

// do makes one call, up to attempts times. Each answer but success is printed, as actions/runner prints it: the name that .NET gives
// the status, the call and the body (src/Runner.Common/RunnerDotcomServer.cs:157-163). shown is the call's name, such as
// "POST https://github.example/api/v3/actions/runner-registration".
func (g *gitHub) do(shown, path string, q, into any) error {
	for n := 1; ; n++ {
		_, err := g.call(context.Background(), callTime, http.MethodPost, path, nil, q, into)
		var status *statusError
		if errors.As(err, &status); status != nil && status.code == http.StatusConflict {
			return err // a taken name, which actions/runner finds by a list
		}
		if status != nil {
			fmt.Fprintf(g.errOut, "Http response code: %s from '%s' (Request Id: %s)\n%s\n", statusName(status.code), shown, requestID(), status.body)
			err = message(fmt.Sprintf("Response status code does not indicate success: %d (%s).", status.code, http.StatusText(status.code)))
		}
		if err == nil || n == attempts || status != nil && status.code == http.StatusNotFound {
			return withStatus(err, status)
		}
		time.Sleep(rand.N(longestPause()) + 1)
	}
}

// withStatus lets codeOf find the status of an error with another text.
func withStatus(err error, status *statusError) error {
	if status == nil {
		return err
	}
	return &statusError{code: status.code, message: err.Error()}
}

func longestPause() time.Duration {
	if d, err := time.ParseDuration(os.Getenv(RetryPauseVariable)); err == nil && d > 0 {
		return d
	}
	return retryPause
}

// statusName is how .NET's HttpStatusCode prints a status: the words of RFC 9110 without spaces, or the number.
func statusName(code int) string {
	name := strings.ReplaceAll(http.StatusText(code), " ", "")
	if name == "" || strings.ContainsAny(name, "'-") {
		return fmt.Sprint(code)
	}
	return name
}

// requestID is of the form of X-GitHub-Request-Id.
func requestID() string {
	return fmt.Sprintf("%04X:%X:%X:%X:%08X", rand.N(1<<16), rand.N(1<<20), rand.N(1<<28), rand.N(1<<28), time.Now().Unix())
}

// problemText is the message of a refusal's body, or the status line.
func problemText(body []byte, status string) string {
	p := struct{ Message string }{status}
	_ = json.Unmarshal(body, &p) // an answer that is not JSON keeps the status line
	return p.Message
}
