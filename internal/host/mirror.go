package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/remuda-ci/remuda/internal/host/cachestore"
	"github.com/remuda-ci/remuda/internal/host/gitmirror"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/lifecycle/cache"
	"github.com/remuda-ci/remuda/internal/logkey"
	"github.com/remuda-ci/remuda/internal/safefile"
)

const (
	// mirrorLimit is how long a release waits for git. What has not come by then is left to a later release.
	mirrorLimit = 30 * time.Second
	// mirrorFresh is how old the mirror of a branch may be before a release fetches again: jobs get from GitHub what it does not have.
	mirrorFresh = 10 * time.Minute
	// mirrorPause is for how long a repository that did not come in time is left alone: each release would wait for nothing.
	mirrorPause = 6 * time.Hour
)

// lateMirror names the repository that did not come in time, and is as old as that.
const lateMirror = "state/mirror.late"

// mirrorFile is what a clean-up needs to fetch a mirror, with a token: its directory is closed to jobs, and the clean-up deletes it.
const mirrorFile = "state/tasks/clean.mirror"

// leaveMirror leaves it for the clean-up that is about to start; nil: there is nothing to fetch.
func (h *Host) leaveMirror(m *lifecycle.Mirror) error {
	if m == nil {
		return removeFiles(h.path(mirrorFile))
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return writeFile(h.path(mirrorFile), data)
}

// takeMirror takes it, for the clean-up that has started.
func (h *Host) takeMirror() *lifecycle.Mirror {
	data, err := safefile.Read(h.path(mirrorFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var m lifecycle.Mirror
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if removeErr := removeFiles(h.path(mirrorFile)); removeErr != nil {
		h.log.Error("a token is left on the disk", logkey.Error, removeErr)
	}
	if err != nil {
		h.log.Warn("mirror not fetched", logkey.Error, err)
		return nil
	}
	return &m
}

// fetchMirror fetches the branch of the last run into the mirror of its repository. dirs are what the mirror is made of, the newest first.
func (h *Host) fetchMirror(ctx context.Context, spec cache.Spec, dir string, dirs []string) (cachestore.Filled, error) {
	if h.mirror == nil {
		return cachestore.Filled{}, nil
	}
	if h.mirrorIsLate(h.mirror.URL) {
		return cachestore.Filled{}, fmt.Errorf("the mirror is left as it is: %s did not come in %s within the last %s", h.mirror.URL, mirrorLimit, mirrorPause)
	}
	ctx, cancel := context.WithTimeout(ctx, mirrorLimit)
	defer cancel()
	m := gitmirror.Mirror{Mirror: *h.mirror, At: h.inHome(cache.GitPath), Fresh: mirrorFresh, Largest: spec.Size, Env: h.proxyVariables()}
	change, err := m.Fetch(ctx, dirs, dir)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(err, writeFile(h.path(lateMirror), []byte(h.mirror.URL)))
	}
	return cachestore.Filled{Added: change.Packs, Whole: change.Whole}, err
}

func (h *Host) mirrorIsLate(url string) bool {
	late, err := safefile.Read(h.path(lateMirror))
	if err != nil || string(late) != url {
		return false
	}
	info, err := os.Stat(h.path(lateMirror))
	return err == nil && time.Since(info.ModTime()) < mirrorPause
}

// proxyVariables are those of the jobs' environment by which git finds the proxy, and trusts the server.
func (h *Host) proxyVariables() (variables []string) {
	for _, name := range []string{"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "GIT_SSL_CAINFO"} {
		if v := h.o.Env[name]; v != "" {
			variables = append(variables, name+"="+v)
		}
	}
	return variables
}
