package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
)

// Check has every call of GitHub's that goes through it fail the test, unless its request and its answer are as the description says.
// It is for tests of those who call. next makes the calls; nil is http.DefaultTransport. Calls of the stand-in's own pass unseen.
func Check(t testing.TB, next http.RoundTripper) http.RoundTripper { return newChecker(t, next, false) }

// CheckAnswers is Check for tests of those who answer: a request may be wrong, but then it must be refused.
func CheckAnswers(t testing.TB, next http.RoundTripper) http.RoundTripper {
	return newChecker(t, next, true)
}

type checker struct {
	t       testing.TB
	next    http.RoundTripper
	lenient bool
	*description
}

func newChecker(t testing.TB, next http.RoundTripper, lenient bool) *checker {
	t.Helper()
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if next == nil {
		next = http.DefaultTransport
	}
	return &checker{t, next, lenient, d}
}

// own are the paths that are none of GitHub's API.
var own = regexp.MustCompile(`^/(_standin|\.well-known)/`)

func (c *checker) RoundTrip(r *http.Request) (*http.Response, error) {
	if own.MatchString(r.URL.Path) {
		return c.next.RoundTrip(r)
	}
	sent, err := drain(r.Body)
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	if r.Body != nil && r.Body != http.NoBody {
		out.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := c.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	got, err := drain(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(got))
	for _, wrong := range c.wrong(r, sent, resp, got) {
		c.t.Errorf("%s %s: status %d: %s", r.Method, r.URL.RequestURI(), resp.StatusCode, wrong)
	}
	return resp, nil
}

// CloseIdleConnections closes those of what makes the calls.
func (c *checker) CloseIdleConnections() { (&http.Client{Transport: c.next}).CloseIdleConnections() }

func drain(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	text, err := io.ReadAll(body)
	return text, errors.Join(err, body.Close())
}

// wrong is all that the description does not have of a call.
func (c *checker) wrong(r *http.Request, sent []byte, resp *http.Response, got []byte) []string {
	asked := r.Clone(r.Context())
	// The router would take a slash in a name, which is escaped, for one between names.
	asked.URL.Path, asked.URL.RawPath = strings.TrimPrefix(r.URL.EscapedPath(), "/api/v3"), ""
	asked.Body = io.NopCloser(bytes.NewReader(sent))
	// go-github says null for options that were not given. GitHub takes that for no body, and only where none is required.
	if len(bytes.TrimSpace(sent)) == 0 || string(bytes.TrimSpace(sent)) == "null" {
		asked.Body = nil
	}
	route, params, err := c.router.FindRoute(asked)
	if err != nil {
		return slices.Concat(c.request(resp, []string{"GitHub's description, as far as it was taken, has no such operation"}), c.refusal(resp, got))
	}
	in := &openapi3filter.RequestValidationInput{
		Request: asked, PathParams: params, Route: route, QueryParams: asked.URL.Query(),
		Options: &openapi3filter.Options{MultiError: true, SkipSettingDefaults: true, SchemaValidationOptions: validation},
	}
	var wrong []string
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
		wrong = c.request(resp, explain("request", err))
	}
	wrong = append(wrong, c.headers(resp)...)
	if route.Operation.Responses.Status(resp.StatusCode) == nil {
		return append(wrong, c.refusal(resp, got)...)
	}
	return append(wrong, response(in, resp, got)...)
}

// request is what is wrong with a request, unless it may be wrong and was refused.
func (c *checker) request(resp *http.Response, wrong []string) []string {
	if c.lenient && resp.StatusCode >= 400 && resp.StatusCode < 500 {
		return nil
	}
	return wrong
}

func response(in *openapi3filter.RequestValidationInput, resp *http.Response, got []byte) []string {
	options := *in.Options
	options.IncludeResponseStatus = true
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: resp.StatusCode, Header: resp.Header, Options: &options,
	}
	out.SetBodyBytes(got)
	if err := openapi3filter.ValidateResponse(in.Request.Context(), out); err != nil {
		return explain("answer", err)
	}
	if len(in.Route.Operation.Responses.Status(resp.StatusCode).Value.Content) == 0 && len(got) > 0 {
		return []string{fmt.Sprintf("answer: has a body and should have none: %.100s", got)}
	}
	return nil
}

// anywhere are the statuses that GitHub's documentation gives for every operation and its description for few.
var anywhere = []int{
	http.StatusNotModified, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
	http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// refusal is what is wrong with an answer that the description does not have for its operation.
func (c *checker) refusal(resp *http.Response, got []byte) []string {
	if !slices.Contains(anywhere, resp.StatusCode) {
		return []string{"answer: no such status is documented"}
	}
	if resp.StatusCode == http.StatusNotModified {
		if len(got) > 0 {
			return []string{"answer: has a body and should have none"}
		}
		return nil
	}
	var body map[string]any
	if err := json.Unmarshal(got, &body); err != nil {
		return []string{"answer: " + err.Error()}
	}
	for _, name := range []string{"message", "documentation_url"} { // clients rely on both, and the description requires neither
		if text, _ := body[name].(string); text == "" {
			return []string{"answer: an error without a " + name}
		}
	}
	if err := c.against("basic-error", body); err != nil {
		return explain("answer", err)
	}
	return nil
}

var (
	limitHeader = regexp.MustCompile(`^\d+$`)
	linkHeader  = regexp.MustCompile(`^<https?://[^>]+>; rel="(next|prev|first|last)"(, <https?://[^>]+>; rel="(next|prev|first|last)")*$`)
)

// headers is what is wrong with those that the description leaves to the documentation. Errors of a server that is down have none.
func (c *checker) headers(resp *http.Response) []string {
	var wrong []string
	if resp.StatusCode < 500 {
		for _, name := range []string{"Limit", "Remaining", "Used", "Reset"} {
			if value := resp.Header.Get("X-RateLimit-" + name); !limitHeader.MatchString(value) {
				wrong = append(wrong, fmt.Sprintf("answer: header X-RateLimit-%s is %q", name, value))
			}
		}
		if resp.Header.Get("X-RateLimit-Resource") == "" {
			wrong = append(wrong, "answer: no header X-RateLimit-Resource")
		}
	}
	if link := resp.Header.Get("Link"); link != "" && !linkHeader.MatchString(link) {
		wrong = append(wrong, fmt.Sprintf("answer: header Link is %q", link))
	}
	if after := resp.Header.Get("Retry-After"); after != "" && !limitHeader.MatchString(after) {
		wrong = append(wrong, fmt.Sprintf("answer: header Retry-After is %q", after))
	}
	return wrong
}

// explain makes one line of each thing that is wrong, with its place and without the schema.
func explain(what string, err error) []string {
	var many openapi3.MultiError
	if errors.As(err, &many) {
		var out []string
		for _, one := range many {
			out = append(out, explain(what, one)...)
		}
		return out
	}
	var schema *openapi3.SchemaError
	if errors.As(err, &schema) {
		if schema.Origin != nil && errors.As(schema.Origin, &many) {
			return explain(what, schema.Origin)
		}
		return []string{fmt.Sprintf("%s: /%s: %s", what, strings.Join(schema.JSONPointer(), "/"), schema.Reason)}
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return []string{what + ": " + first}
}
