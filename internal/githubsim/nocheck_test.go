//go:build !openapi

package githubsim_test

import (
	"net/http"
	"testing"
)

func checkAnswers(_ testing.TB, next http.RoundTripper) http.RoundTripper { return next }

func checkDelivery(testing.TB, string, []byte) {}
