package cost_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
)

// knownReads are the answers to reads of rows that have not been written since. A
// fleet in AWS mostly reads what has not changed, and DynamoDB Local answers that with
// the same rows and units each time, in milliseconds of processor time. A call that
// is answered from here is still made, counted and metered by the SDK's client.
type knownReads struct {
	mu sync.Mutex
	// writes counts the writes to a table, each when it begins and when it ends, so
	// that a read beside a write is never taken for a later one.
	writes map[string]int
	// known are the answers, by operation and body.
	known map[string]knownRead
}

type knownRead struct {
	writes int // to the table, before the read began
	status int
	header http.Header
	body   []byte
}

func newKnownReads() *knownReads {
	return &knownReads{writes: map[string]int{}, known: map[string]knownRead{}}
}

// through answers the reads of an HTTP client. All clients that write to the same
// tables have to go through the same knownReads.
func (k *knownReads) through(c sdk.HTTPClient) sdk.HTTPClient { return knownClient{c, k} }

type knownClient struct {
	sdk.HTTPClient
	reads *knownReads
}

func (c knownClient) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch operation {
	case "GetItem", "Query":
		return c.read(r, tableOf(body), operation+string(body))
	case "PutItem", "UpdateItem", "DeleteItem":
		defer c.reads.written(tableOf(body))()
	case "BatchGetItem", "Scan", "DescribeTable", "DescribeTimeToLive", "DescribeContinuousBackups": // they write nothing
	default: // it may write anywhere
		defer c.reads.written("")()
	}
	return c.HTTPClient.Do(r)
}

// read makes a call unless its answer is known.
func (c knownClient) read(r *http.Request, table, key string) (*http.Response, error) {
	writes, known, ok := c.reads.find(table, key)
	if ok {
		return known.response(r), nil
	}
	response, err := c.HTTPClient.Do(r)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	known = knownRead{writes, response.StatusCode, response.Header, body}
	c.reads.note(key, known)
	return known.response(r), nil
}

// response returns a copy of the known answer.
func (k knownRead) response(r *http.Request) *http.Response {
	return &http.Response{
		StatusCode: k.status, Status: http.StatusText(k.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: k.header.Clone(), Body: io.NopCloser(bytes.NewReader(k.body)), ContentLength: int64(len(k.body)), Request: r,
	}
}

// find returns how many writes there were so far, and the answer if it is known.
func (k *knownReads) find(table, key string) (writes int, known knownRead, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	writes = k.writes[table] + k.writes[""]
	known, ok = k.known[key]
	return writes, known, ok && known.writes == writes
}

func (k *knownReads) note(key string, known knownRead) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[key] = known
}

// written notes that a write to a table begins, or to any table if it is "". The
// function that it returns notes its end.
func (k *knownReads) written(table string) (end func()) {
	count := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.writes[table]++
	}
	count()
	return count
}

// tableOf is the table of a call for one; "" without one.
func tableOf(body []byte) string {
	var call struct{ TableName string }
	_ = json.Unmarshal(body, &call) // DynamoDB says what is wrong with it
	return call.TableName
}
