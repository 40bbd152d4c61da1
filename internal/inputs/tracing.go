package inputs

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// maxHeaders is more than any service that takes spans asks for, in bytes.
const maxHeaders = 8 << 10

// header is a name as gRPC has it, in lower case, and a value that is printed.
var header = regexp.MustCompile(`^([a-z0-9_.-]{1,64}): ?([\x20-\x7e]{1,1000})$`)

// tracing reads what is trusted where spans go, and what goes with them.
func (r *reader) tracing() {
	t, at := r.c.Tracing, r.root.At("tracing")
	if t.CAFile != "" {
		if r.in.TracingAuthorities = read(at.At("ca_file"), t.CAFile, "the certificate of an authority in PEM form", maxPEM); r.in.TracingAuthorities != nil {
			r.authorities(at.At("ca_file"), "tracing.ca_file", t.CAFile, r.in.TracingAuthorities)
		}
	}
	if t.HeadersFile == "" {
		return
	}
	at = at.At("headers_file")
	r.in.TracingHeaders = map[string]lifecycle.Secret{}
	text := read(at, t.HeadersFile, "headers, as `name: value` in each line", maxHeaders)
	if text == nil {
		return // read has said why
	}
	if len(bytes.TrimSpace(text)) == 0 {
		at.Errorf("%s has no header; write `name: value`, the name in lower case", t.HeadersFile)
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		name, value, wrong := headerOf(string(bytes.TrimSpace(line)))
		switch _, twice := r.in.TracingHeaders[name]; {
		case wrong != "":
			at.Errorf("%s has no header in line %d: %s", t.HeadersFile, n, wrong)
		case twice:
			at.Errorf("%s has the header %s again in line %d", t.HeadersFile, name, n)
		case name != "":
			r.in.TracingHeaders[name] = value
		}
	}
}

// headerOf is the header in a line, or what is wrong with it. An empty line has none. gRPC keeps names that begin with grpc- for itself, and has values
// of names that end in -bin encoded.
func headerOf(line string) (name string, value lifecycle.Secret, wrong string) {
	m := header.FindStringSubmatch(line)
	switch {
	case line == "":
		return "", "", ""
	case m == nil:
		return "", "", "write `name: value`, the name in lower case"
	case strings.HasPrefix(m[1], "grpc-"), strings.HasSuffix(m[1], "-bin"):
		return "", "", m[1] + " is a name that gRPC reserves"
	}
	return m[1], lifecycle.Secret(m[2]), ""
}
