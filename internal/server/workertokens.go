package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/secretfile"
)

// workerToken is one in a file. It must not be guessable, so it has to be as long as a key.
var workerToken = secretfile.Kind{Noun: "token", Least: 32}

// TokenSource gives the tokens that are good. It is asked for each call, so that a token may be replaced
// while the daemon runs: the new one is added, the callers get it, and then the old one is removed.
type TokenSource func() ([]lifecycle.Secret, error)

// TokenFile reads tokens from a file, one in each line, each of at least 32 bytes. An error names
// the file and nothing of what is in it. The file is read again once it was replaced or has changed, not for
// each call, since unknown callers can call too.
func TokenFile(path string) TokenSource {
	var (
		mu     sync.Mutex
		last   os.FileInfo // of the file as it was read; nil: to be read
		tokens []lifecycle.Secret
		wrong  error
	)
	return func() ([]lifecycle.Secret, error) {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read tokens: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if last != nil && os.SameFile(info, last) && info.ModTime().Equal(last.ModTime()) && info.Size() == last.Size() {
			return tokens, wrong
		}
		last = nil
		if time.Since(info.ModTime()) > settled {
			last = info
		}
		if tokens, wrong = workerToken.Read(path); wrong != nil {
			wrong = fmt.Errorf("read tokens: %w", wrong)
		}
		return tokens, wrong
	}
}

// settled is for how long a file must not have changed before what was read of it is
// kept: file systems tell times apart by a few milliseconds, some by a second or two,
// and one that is written twice in that time would look the same.
const settled = 3 * time.Second

// WorkerTokens are where the tokens of the workers come from, by service.
type WorkerTokens map[string]TokenSource

// Services are the names of the services whose token this is. It takes as long whichever it is, and however
// much of it is right. A source that fails hides no other: the error names it.
func (t WorkerTokens) Services(token string) (found []string, err error) {
	is := sha256.Sum256([]byte(token))
	for _, name := range slices.Sorted(maps.Keys(t)) {
		tokens, wrong := t[name]()
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("service %s: %w", name, wrong))
		}
		good := 0
		for _, one := range tokens {
			want := sha256.Sum256([]byte(one.Reveal()))
			good |= subtle.ConstantTimeCompare(is[:], want[:])
		}
		if good == 1 {
			found = append(found, name)
		}
	}
	return found, err
}

// worker tells which services' worker has a token.
func (e *interceptors) worker(token string) (caller, error) {
	services, err := e.callers.Workers.Services(token)
	if err != nil {
		e.log.Error("cannot read worker tokens", logkey.Error, err)
	}
	switch {
	case len(services) > 0:
		return caller{name: "a worker of " + strings.Join(services, ", "), services: services}, nil
	case err != nil:
		return caller{}, unavailable(errors.New("the worker tokens cannot be read now"))
	}
	return caller{}, status.Error(codes.Unauthenticated, "the token is not the worker token of a service")
}

// ownService keeps a worker to the services of its token.
func ownService(own []string, req any) error {
	if r, ok := req.(interface{ GetService() string }); ok && slices.Contains(own, r.GetService()) {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "the token is that of a worker of %s: it is good for no other service", strings.Join(own, ", "))
}
