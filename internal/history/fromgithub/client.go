package fromgithub

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

const (
	// maxBody bounds an answer, in bytes. A page of 100 runs or jobs has a few MB.
	maxBody = 64 << 20
	// mostRedirects is how often a call is sent on. GitHub does so once, for a repository that has another name by now.
	mostRedirects = 5
	// mostPages bounds a list: 100,000 repositories, or jobs of a run.
	mostPages = 1000
)

// refusal is an answer that would be the same again.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

// stay refuses to be sent to another host: the client adds the token to each call, wherever it goes.
func stay(to *http.Request, via []*http.Request) error {
	switch from := via[0].URL; {
	case to.URL.Scheme != from.Scheme || to.URL.Host != from.Host:
		return &refusal{fmt.Sprintf("the API at %s sends the call to another host, %.80q, which is not given the token", from.Host, to.URL.Host)}
	case len(via) > mostRedirects:
		return &refusal{"the API sends the call in a circle"}
	}
	return nil
}

// bounded reads so much of an answer at most.
type bounded struct{ under http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.under.RoundTrip(r)
	if err == nil {
		response.Body = &body{response.Body, maxBody}
	}
	return response, err
}

type body struct {
	io.ReadCloser
	left int
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, &refusal{fmt.Sprintf("an answer has more than %d MiB", maxBody>>20)}
	}
	return n, err
}

// following is the page after one, as GitHub names it; 0: there is none.
func following(page, next int) (int, error) {
	if next != 0 && (next <= page || next > mostPages) {
		return 0, fmt.Errorf("page %d is said to follow page %d", next, page)
	}
	return next, nil
}

// isRefusal reports whether an error is one.
func isRefusal(err error) bool {
	var r *refusal
	return errors.As(err, &r)
}
