package firstcontact_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/remuda-ci/remuda/internal/findings"
	"github.com/remuda-ci/remuda/internal/firstcontact"
)

// cutOff makes the options of a run whose calls of GitHub fail from the first one of a kind on, until back calls have failed; 0: all.
func (w *world) cutOff(o *firstcontact.Options, back int64, kind func(*http.Request) bool) (failed *atomic.Int64) {
	var cut atomic.Bool
	failed = new(atomic.Int64)
	next := w.transport
	o.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if kind(r) {
			cut.Store(true)
		}
		if cut.Load() && (back == 0 || failed.Load() < back) {
			failed.Add(1)
			return nil, syscall.ENETUNREACH
		}
		return next.RoundTrip(r)
	})
	return failed
}

// TestCutOff has GitHub out of reach in the midst of a check, while a job waits.
func TestCutOff(t *testing.T) {
	setsLabels := func(r *http.Request) bool { return r.Method == "PUT" && strings.HasSuffix(r.URL.Path, "/labels") }
	const why = "check labels: set labels: cannot reach GitHub at "

	t.Run("for one call", func(t *testing.T) {
		w := newWorld(t)
		o := w.options("labels", "defaults")
		w.cutOff(&o, 1, setsLabels)
		report, err := firstcontact.Run(t.Context(), o)
		if err == nil || !strings.HasPrefix(err.Error(), why) {
			t.Errorf("%v\n%s", err, w.progress.String())
		}
		got := verdicts(report)
		for _, name := range []string{"label-assigns", "no-default-labels", "jit-labels"} {
			if got[name] != findings.Undecided {
				t.Errorf("%s is %s", name, got[name])
			}
		}
		w.clean(o)
	})

	t.Run("from then on", func(t *testing.T) {
		w := newWorld(t)
		o := w.options("labels", "defaults")
		failed := w.cutOff(&o, 0, setsLabels)
		_, err := firstcontact.Run(t.Context(), o)
		if err == nil {
			t.Fatalf("no error\n%s", w.progress.String())
		}
		left, cause, _ := strings.Cut(err.Error(), "\n")
		for _, part := range []string{"remove by hand what is left at " + w.url + "/acme/app: ", "branch first-contact-", "run 9", "runners first-contact-"} {
			if !strings.Contains(left, part) {
				t.Errorf("%q does not say %q", left, part)
			}
		}
		if !strings.HasPrefix(cause, why) || strings.Contains(cause, "\n") {
			t.Errorf("%q, want one line that begins with %q", cause, why)
		}
		if n := failed.Load(); n != 2 { // the call of the check, and one of the removal
			t.Errorf("%d calls were made that failed", n)
		}
	})
}

// TestRunnerIsNeeded runs without a runner against the stand-in, which offers none.
func TestRunnerIsNeeded(t *testing.T) {
	w := newWorld(t)
	o := w.options("defaults")
	o.Runner = ""
	_, err := firstcontact.Run(t.Context(), o)
	if want := "give --runner DIR, since the newest runner cannot be downloaded: " + w.url + "/api/v3 offers none"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	w.clean(o)
}
