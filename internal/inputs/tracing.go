package inputs

import (
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
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if m := header.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			r.in.TracingHeaders[m[1]] = lifecycle.Secret(m[2])
		} else if text != nil {
			at.Errorf("%s has no header in line %d; write `name: value`, the name in lower case", t.HeadersFile, i+1)
		}
	}
}
