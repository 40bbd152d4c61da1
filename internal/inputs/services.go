package inputs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/server"
	"github.com/remuda-ci/remuda/internal/services/postgrest"
)

// services reads the token files of services. Later an error in a file is reported at each call. The warnings name
// services whose workers share a token and so cannot be distinguished.
func (r *reader) services() {
	have := map[lifecycle.Secret][]string{} // by token of workers, the services
	for _, name := range slices.Sorted(maps.Keys(r.c.Services)) {
		s := r.c.Services[name]
		for _, token := range r.tokens(name, "worker_token_file", s.WorkerTokenFile) {
			if !slices.Contains(have[token], name) {
				have[token] = append(have[token], name)
			}
		}
		r.tokens(name, "nudge_token_file", s.NudgeTokenFile)
		if q := s.Queue.PostgREST; q != nil && q.TokenFile != "" {
			at := r.root.At("services", name, "queue", "postgrest", "token_file")
			if there(at, q.TokenFile) {
				if _, err := postgrest.ReadToken(q.TokenFile); err != nil {
					at.Errorf("%v", err)
				}
			}
		}
	}
	var shared []string
	for _, services := range have {
		if len(services) > 1 {
			shared = append(shared, fmt.Sprintf("services %s have a worker token in common: "+
				"any caller that shows it may submit, take and end the jobs of each of them; give each a token of its own", strings.Join(services, " and ")))
		}
	}
	slices.Sort(shared)
	r.in.Warnings = append(r.in.Warnings, slices.Compact(shared)...)
}

// tokens reads a token file of a service; the path "" means that there is none.
func (r *reader) tokens(service, key, path string) []lifecycle.Secret {
	at := r.root.At("services", service, key)
	if !there(at, path) {
		return nil
	}
	tokens, err := server.TokenFile(path)()
	if err != nil {
		at.Errorf("%v", err)
	}
	return tokens
}
