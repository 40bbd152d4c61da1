package github_test

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

func TestTheAuthorityOfAnEnterpriseServer(t *testing.T) {
	server := httptest.NewUnstartedServer(newFake("a"))
	server.Config.ErrorLog = hclog.NewNullLogger().StandardLogger(nil)
	server.StartTLS()
	defer server.Close()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, test := range map[string]struct {
		authorities []byte
		trusted     bool
	}{"its own": {own, true}, "with text before": {append([]byte("# ours\n"), own...), true}, "the system's alone": {nil, false}} {
		t.Run(name, func(t *testing.T) {
			transport, err := github.NewTransport(test.authorities)
			if err != nil {
				t.Fatal(err)
			}
			c := newClient(t, github.Config{URL: server.URL + "/api/v3", Transport: transport})
			_, err = c.FindRunner(t.Context(), "acme/app", "a")
			if (err == nil) != test.trusted {
				t.Errorf("got %v", err)
			}
			if err != nil && (errors.Is(err, lifecycle.ErrUnavailable) || !strings.Contains(err.Error(), "ca_file")) {
				t.Errorf("got %v", err)
			}
		})
	}
	for _, text := range []string{"x", string(own[:len(own)/2]), string(appPEM())} {
		if _, err := github.NewTransport([]byte(text)); err == nil || !strings.Contains(err.Error(), "there is no certificate in it") {
			t.Errorf("got %v", err)
		}
	}
}
