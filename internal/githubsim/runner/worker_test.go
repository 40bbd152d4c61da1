package runner

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/remuda-ci/remuda/internal/githubsim/expr"
	"github.com/remuda-ci/remuda/internal/githubsim/protocol"
	"github.com/remuda-ci/remuda/internal/githubsim/workflow/step"
)

// TestConclusionOfAJobEndedBetweenSteps has the end come while no step runs, which no step can then show.
func TestConclusionOfAJobEndedBetweenSteps(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer server.Close()
	steps := []step.Step{{Run: expr.Literal("exit 1")}}
	for name, tc := range map[string]struct {
		steps []step.Step
		why   error
		want  string
	}{
		"cancelled":               {steps, errCanceled, "cancelled"},
		"shut down":               {steps, errShutdown, "failure"},
		"lost":                    {steps, errLost, "failure"},
		"with nothing left to do": {nil, errCanceled, "success"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancelCause(context.Background())
			end(tc.why)
			w := &worker{root: t.TempDir(), tracking: "worker-test", job: protocol.Job{
				GitHub: map[string]any{"repository": "acme/app"}, Steps: tc.steps,
			}}
			w.report = newReporter(newClient(server.URL, "x"), 1, func() {})
			defer w.report.close()
			if got := w.run(ctx, nil); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
