package github

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxBody bounds an answer: a page of 100 runners is below 200 KiB, a webhook of ours below 100 KiB.
const maxBody = 8 << 20

// NewTransport returns a transport that trusts, beside the system's
// authorities, those of a PEM text; with an empty text the system's alone.
func NewTransport(authorities []byte) (http.RoundTripper, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = callsAtOnce // with the default of 2 nearly every call would dial
	if len(authorities) == 0 {
		return transport, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a system without authorities
	}
	if !pool.AppendCertsFromPEM(authorities) {
		return nil, errors.New("there is no certificate in it; write the authority's in PEM form, from -----BEGIN CERTIFICATE----- on")
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, nil
}

// authorized carries the calls of one credential: signed ones to the API's own
// host, plain ones to others, so that after a redirect the token stays behind.
type authorized struct {
	base          *url.URL
	signed, plain http.RoundTripper
	budget        *budget
}

func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // those below add headers
	if r.URL.Host != a.base.Host || r.URL.Scheme != a.base.Scheme {
		response, err := a.plain.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		return bound(response), nil
	}
	response, err := a.signed.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	bound(response)
	now := time.Now()
	a.budget.observe(response.Header, now)
	if wait := asksToWait(response.Header, now); wait > 0 && response.StatusCode >= http.StatusBadRequest {
		a.budget.rest(wait, now)
	}
	if limited := limitOf(response, now); limited != nil {
		_ = response.Body.Close()
		if limited.why == secondaryLimit {
			a.budget.rest(limited.wait, now)
		}
		return nil, limited
	}
	// The client library keeps a gate of its own by these headers. It believes
	// them whatever they say, and has one for all resources.
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		response.Header.Del(name)
	}
	return response, nil
}

func bound(response *http.Response) *http.Response {
	response.Body = bounded{io.LimitReader(response.Body, maxBody), response.Body}
	return response
}

// bounded reads at most so much and closes what it reads.
type bounded struct {
	io.Reader
	io.Closer
}

const (
	primaryLimit   = "GitHub's rate limit is used up"
	secondaryLimit = "GitHub's secondary rate limit was hit"
)

// limitOf tells whether an answer is that of a rate limit. The client library
// would too, but takes the reset of the primary limit, up to an hour ahead, for
// the end of a secondary one that does not say how long it lasts.
func limitOf(response *http.Response, now time.Time) *restError {
	status, header := response.StatusCode, response.Header
	if status != http.StatusForbidden && status != http.StatusTooManyRequests {
		return nil
	}
	wait := asksToWait(header, now)
	switch {
	case header.Get("X-RateLimit-Remaining") == "0":
		wait = cmp.Or(wait, untilReset(header, now))
		return &restError{primaryLimit, max(wait, time.Second), status}
	case wait > 0:
		return &restError{secondaryLimit, wait, status}
	case status == http.StatusTooManyRequests, saysSecondary(response):
		return &restError{secondaryLimit, limitedFor, status}
	}
	return nil
}

// saysSecondary looks into a refusal, whose body can still be read then.
func saysSecondary(response *http.Response) bool {
	body, err := io.ReadAll(response.Body)
	response.Body = bounded{bytes.NewReader(body), response.Body}
	text := strings.ToLower(strings.ReplaceAll(string(body), "-", " ")) // links have hyphens
	return err == nil && (strings.Contains(text, "secondary rate limit") || strings.Contains(text, "#abuse rate limits"))
}
