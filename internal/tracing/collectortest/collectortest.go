// Package collectortest runs the collector of OpenTelemetry in tests, and reads what it took.
package collectortest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Collector takes OTLP over gRPC. It hands on what it took as JSON, to the test.
type Collector struct {
	// Endpoint is where it takes spans: http://127.0.0.1:PORT.
	Endpoint string

	mu  sync.Mutex
	got []Span
}

// StatusError is the code of the status of a span that failed.
const StatusError = 2

// Span is one as OTLP has it in JSON.
type Span struct {
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Links        []struct {
		SpanID string `json:"spanId"`
	} `json:"links"`
	Name              string      `json:"name"`
	StartTimeUnixNano string      `json:"startTimeUnixNano"`
	EndTimeUnixNano   string      `json:"endTimeUnixNano"`
	Attributes        []Attribute `json:"attributes"`
	Status            struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"status"`
}

// Attribute is one of a span. Its value is under the name of its type.
type Attribute struct {
	Key   string                     `json:"key"`
	Value map[string]json.RawMessage `json:"value"`
}

// Texts are the attributes of a span, as texts.
func (s Span) Texts() map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		for _, raw := range a.Value {
			text, err := strconv.Unquote(string(raw))
			if err != nil {
				text = string(raw)
			}
			all[a.Key] = text
		}
	}
	return all
}

// Length is how long a span took.
func (s Span) Length() time.Duration {
	from, _ := strconv.ParseInt(s.StartTimeUnixNano, 10, 64)
	to, _ := strconv.ParseInt(s.EndTimeUnixNano, 10, 64)
	return time.Duration(to - from)
}

// Start runs the collector of internal/tools/otelcol, whose program is in dir.
func Start(t *testing.T, dir string) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	port := free(t)
	c.Endpoint = fmt.Sprintf("http://127.0.0.1:%d", port)
	config := fmt.Sprintf(`yaml:
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:%d", include_metadata: true}}}}
exporters: {otlp_http: {endpoint: %q, encoding: json, compression: none, sending_queue: {enabled: false}}}
service: {telemetry: {metrics: {level: none}, logs: {level: warn}}, pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}}
`, port, server.URL)
	var log bytes.Buffer
	command := exec.Command(filepath.Join(dir, "otelcol"), "--config", config)
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		cancel()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the collector said: %s", log.Bytes())
		}
	})
	await(ctx, t, port)
	return c
}

func free(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// await waits until the collector listens.
func await(ctx context.Context, t *testing.T, port int) {
	t.Helper()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the collector does not listen: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ServeHTTP takes what the collector hands on.
func (c *Collector) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var batch struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []Span `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	if err := json.Unmarshal(body, &batch); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range batch.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.got = append(c.got, scope.Spans...)
		}
	}
}

// Spans are what came. There must be so many; 0: any number. The collector answers once it has handed on what it took, so that after a Close all are here.
func (c *Collector) Spans(t *testing.T, want int) []Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if want > 0 && len(c.got) != want {
		t.Fatalf("%d spans came, want %d: %+v", len(c.got), want, c.got)
	}
	return slices.Clone(c.got)
}

// Find is the first span with a name.
func Find(t *testing.T, spans []Span, name string) Span {
	t.Helper()
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no span %s: %+v", name, spans)
	return Span{}
}
