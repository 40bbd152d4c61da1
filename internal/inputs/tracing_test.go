package inputs_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTracingHeaders: each line is a header or empty, and what is wrong is named with its line.
func TestTracingHeaders(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want map[string]string
		says string
	}{
		"headers":         {"x-key: secret\nx-team: ci\n", map[string]string{"x-key": "secret", "x-team": "ci"}, ""},
		"empty lines":     {"\n  \nx-key: secret\r\n\nx-team: ci", map[string]string{"x-key": "secret", "x-team": "ci"}, ""},
		"no name":         {"\n\nx-key: secret\nsecret\n", nil, "headers has no header in line 4: write `name: value`"},
		"a name twice":    {"x-key: one\n\nx-key: two\n", nil, "headers has the header x-key again in line 3"},
		"a name of gRPC":  {"grpc-timeout: 1S\n", nil, "in line 1: grpc-timeout is a name that gRPC reserves"},
		"a binary value":  {"x-key: secret\nkey-bin: AAAA\n", nil, "in line 2: key-bin is a name that gRPC reserves"},
		"nothing in it":   {"\n\n", nil, "headers has no header; write `name: value`"},
		"upper-case name": {"X-Key: secret", nil, "in line 1: write `name: value`, the name in lower case"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			in, err := p.load("tracing: {endpoint: \"https://collector:4317\", headers_file: " + p.write("headers", tc.file) + "}\n")
			switch {
			case tc.says != "":
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v, want %q", err, tc.says)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			got := maps.Collect(func(yield func(string, string) bool) {
				for name, value := range in.TracingHeaders {
					yield(name, value.Reveal())
				}
			})
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
