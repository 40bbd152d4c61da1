package awstest

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/remuda-ci/remuda/internal/aws"
)

// AWS's protocols, as far as tests need them: JSON names the operation in a header (DynamoDB, SQS), Query in
// the form (EC2, STS, IAM). The service is in the scope of the signature. Sources: smithy.io, "AWS JSON 1.0",
// "AWS Query", "EC2 Query".
const (
	targetHeader = "X-Amz-Target"
	jsonType     = "application/x-amz-json-1.0"
	formType     = "application/x-www-form-urlencoded"
	xmlType      = "text/xml"
)

// scope is what a signature is for: its access key, day, region and service.
var scope = regexp.MustCompile(`Credential=([^/]+)/[0-9]+/[^/]+/([^/]+)/aws4_request`)

// callOf is the call that a request makes; false if it is not a call of AWS.
func callOf(r *http.Request, body []byte) (aws.Call, bool) {
	if _, operation, ok := strings.Cut(r.Header.Get(targetHeader), "."); ok {
		return aws.Call{Service: serviceOf(r), Operation: operation}, true
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), formType) {
		return aws.Call{}, false
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("Action") == "" {
		return aws.Call{}, false
	}
	return aws.Call{Service: serviceOf(r), Operation: form.Get("Action")}, true
}

func serviceOf(r *http.Request) string {
	if m := scope.FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
		return m[2]
	}
	return ""
}

// withAccessKey is an Authorization header with another access key in it.
func withAccessKey(authorization, accessKey string) string {
	m := scope.FindStringSubmatchIndex(authorization)
	if m == nil {
		return authorization
	}
	return authorization[:m[2]] + accessKey + authorization[m[3]:]
}

// Form is the form of a request in the Query protocol. The request can still be forwarded.
func Form(r *http.Request) (url.Values, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return url.ParseQuery(string(body))
}

// WithForm is a request like r with another form: with another Action, it is
// another call of the same caller to the same service.
func WithForm(r *http.Request, form url.Values) *http.Request {
	other := r.Clone(r.Context())
	other.Body = io.NopCloser(strings.NewReader(form.Encode()))
	return other
}

// Fail answers r with an error, as its service would write it.
func Fail(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	Failure(r, status, code, message).Write(w)
}

// Failure is such an answer.
func Failure(r *http.Request, status int, code, message string) *Answer {
	switch service := serviceOf(r); {
	case r.Header.Get(targetHeader) != "":
		return jsonError(service, status, code, message)
	case service == "ec2":
		return xmlAnswer(status, ec2Error{Code: code, Message: message, RequestID: requestID})
	default:
		return xmlAnswer(status, queryError{Type: fault(status), Code: code, Message: message, RequestID: requestID})
	}
}

// requestID stands in every error's answer.
const requestID = "00000000-0000-0000-0000-000000000000"

func jsonError(service string, status int, code, message string) *Answer {
	body, err := json.Marshal(map[string]string{"__type": "com.amazonaws." + service + "#" + code, "message": message})
	if err != nil {
		panic(err) // strings can be marshalled
	}
	header := http.Header{"Content-Type": {jsonType}, "X-Amzn-Requestid": {requestID}}
	if service == "sqs" { // it spoke Query before, and still gives the codes of that time
		header.Set("X-Amzn-Query-Error", code+";"+fault(status))
	}
	return &Answer{Status: status, Header: header, Body: body}
}

type ec2Error struct {
	XMLName   struct{} `xml:"Response"`
	Code      string   `xml:"Errors>Error>Code"`
	Message   string   `xml:"Errors>Error>Message"`
	RequestID string   `xml:"RequestID"`
}

type queryError struct {
	XMLName   struct{} `xml:"ErrorResponse"`
	Type      string   `xml:"Error>Type"`
	Code      string   `xml:"Error>Code"`
	Message   string   `xml:"Error>Message"`
	RequestID string   `xml:"RequestId"`
}

func xmlAnswer(status int, e any) *Answer {
	body, err := xml.Marshal(e)
	if err != nil {
		panic(err) // strings can be marshalled
	}
	return &Answer{Status: status, Header: http.Header{"Content-Type": {xmlType}}, Body: append([]byte(xml.Header), body...)}
}

// fault says whose it is.
func fault(status int) string {
	if status >= http.StatusInternalServerError {
		return "Receiver"
	}
	return "Sender"
}

// Answer is a whole answer, so that it can be looked at, changed or dropped.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Write gives the answer.
func (a *Answer) Write(w http.ResponseWriter) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(a.Body)))
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // a client that is gone needs none
}
