package awstest

import (
	"net/http"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
)

// timeoutHeader tells a Proxy that this client times out on demand, and the client
// to do so now: no test waits for a timeout.
const timeoutHeader = "X-Awstest-Timeout"

// httpClient is the product's client, steered by a Proxy.
type httpClient struct{ sdk.HTTPClient }

func (c httpClient) Do(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(timeoutHeader, "steered")
	response, err := c.HTTPClient.Do(r)
	if err != nil || response.Header.Get(timeoutHeader) == "" {
		return response, err
	}
	response.Body.Close()
	// The error that a client gives whose time is up.
	return (&http.Client{Timeout: time.Nanosecond}).Do(r.Clone(r.Context()))
}
