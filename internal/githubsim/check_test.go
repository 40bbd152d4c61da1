package githubsim_test

import (
	"net/http"
	"testing"

	"github.com/remuda-ci/remuda/internal/githubsim/openapitest"
)

// checkAnswers holds every call of GitHub's against its description.
func checkAnswers(t testing.TB, next http.RoundTripper) http.RoundTripper {
	return openapitest.CheckAnswers(t, next)
}

func checkDelivery(t testing.TB, event string, body []byte) {
	t.Helper()
	openapitest.Delivery(t, event, body)
}
