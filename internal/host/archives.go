package host

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/remuda-ci/remuda/internal/host/archive"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/logkey"
)

// noteUsedActions reads which actions the last run has used, before the runner's directory is renewed. A job can forge it.
func (h *Host) noteUsedActions() {
	keep := h.cachesToKeep()
	if !slices.ContainsFunc(h.o.Caches, func(s cache.Spec) bool { return s.Holds == cache.HoldsActions && slices.Contains(keep, s.Name) }) {
		return
	}
	var err error
	if h.used, err = archive.Used(h.path("runner")); err != nil && !errors.Is(err, fs.ErrNotExist) { // an earlier attempt has renewed it
		h.log.Warn("cannot read which actions the last run has used", logkey.Error, err)
	}
}

// fetchLimit is how long a release waits for archives: only for those that the host does not have. What has not come by then is left to the release
// after the next run that uses it.
const fetchLimit = 10 * time.Second

// connectLimit is for a server that does not answer, as where hosts have no way there. Then nothing more is asked for.
const connectLimit = 3 * time.Second

// fetchArchives fetches the archives of the actions that the last run has used.
func (h *Host) fetchArchives(ctx context.Context, dir string, hadBefore func(path string) bool) (added int, err error) {
	if h.o.ArchivesURL == "" {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	transport := &http.Transport{
		Proxy: h.proxy(), DialContext: (&net.Dialer{Timeout: connectLimit}).DialContext, TLSHandshakeTimeout: connectLimit, ForceAttemptHTTP2: true,
	}
	defer transport.CloseIdleConnections()
	f := archive.Fetcher{URL: h.o.ArchivesURL, Transport: transport}
	var wrong []error
	for _, a := range h.used {
		if hadBefore(a.Path()) {
			continue
		}
		err := f.Fetch(ctx, a, dir)
		if err == nil {
			added++
			continue
		}
		wrong = append(wrong, err)
		var away *url.Error
		if errors.As(err, &away) || ctx.Err() != nil {
			break
		}
	}
	return added, errors.Join(wrong...)
}

// proxy is that of the jobs, who would fetch the archives by it.
func (h *Host) proxy() func(*http.Request) (*url.URL, error) {
	first := func(names ...string) string {
		for _, name := range names {
			if v := h.o.Env[name]; v != "" {
				return v
			}
		}
		return ""
	}
	c := httpproxy.Config{
		HTTPProxy: first("http_proxy", "HTTP_PROXY"), HTTPSProxy: first("https_proxy", "HTTPS_PROXY"), NoProxy: first("no_proxy", "NO_PROXY"),
	}
	of := c.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return of(r.URL) }
}
