package awstest

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
)

// timeoutHeader tells a Proxy that this client times out on demand, and the client
// to do so now: no test waits for a timeout.
const timeoutHeader = "X-Awstest-Timeout"

// validatedHeader tells a Proxy that the client has validated the request.
const validatedHeader = "X-Awstest-Validated"

// httpClient is the product's client, steered by a Proxy. It validates what it sends: not all of its requests go to a Proxy.
type httpClient struct {
	sdk.HTTPClient
	sent *sent
}

func (c httpClient) Do(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(timeoutHeader, "steered")
	if err := c.validate(r); err != nil {
		return nil, err
	}
	response, err := c.HTTPClient.Do(r)
	if err != nil || response.Header.Get(timeoutHeader) == "" {
		return response, err
	}
	response.Body.Close()
	// The error that a client gives whose time is up.
	return (&http.Client{Timeout: time.Nanosecond}).Do(r.Clone(r.Context()))
}

// validate reads the body and puts it back.
func (c httpClient) validate(r *http.Request) error {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	c.sent.validate(r, body)
	r.Header.Set(validatedHeader, "yes")
	return nil
}

// Unanswered is a configuration whose requests go nowhere: they are validated, and get an empty answer. It is for tests with a cloud of their
// own behind the SDK's interfaces, which repeat their calls with it.
func Unanswered(t testing.TB) sdk.Config {
	t.Helper()
	c := Config(t, "http://unanswered.invalid")
	c.HTTPClient = httpClient{HTTPClient: unanswered{}, sent: callerOf(t).sent}
	return c
}

type unanswered struct{}

func (unanswered) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}
