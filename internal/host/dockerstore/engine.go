package dockerstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// newestAPI is the newest version of docker's API whose answers have what is read here; 1.41 of docker 20.10 has it too.
const newestAPI = "1.47"

// maxAnswer bounds an answer, in bytes: a run may leave very many images.
const maxAnswer = 64 << 20

// maxSaid is how much of an error of docker's is repeated, in bytes.
const maxSaid = 300

// engine is docker's daemon, by its socket. No name of an image goes through a shell or is a word of a command line.
type engine struct {
	client  *http.Client
	version string
}

// connect asks the daemon which version of the API it speaks. That starts it, if systemd listens for it.
func connect(ctx context.Context, socket string) (*engine, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	e := &engine{client: &http.Client{Transport: transport}}
	resp, err := e.send(ctx, http.MethodGet, "/_ping", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	e.version = olderAPI(resp.Header.Get("Api-Version"), newestAPI)
	return e, nil
}

func (e *engine) close() { e.client.CloseIdleConnections() }

// olderAPI is the older one of two versions such as 1.41. What is no version is newer than any.
func olderAPI(a, b string) string {
	number := func(v string) int {
		major, minor, _ := strings.Cut(v, ".")
		m, err := strconv.Atoi(major)
		n, minorErr := strconv.Atoi(minor)
		if err != nil || minorErr != nil {
			return 1 << 30
		}
		return m*1000 + n
	}
	if number(a) < number(b) {
		return a
	}
	return b
}

// apiError is a refusal of the daemon.
type apiError struct {
	status  int
	message string
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (HTTP %d)", e.message, e.status) }

// statusOf is the HTTP status of a refusal; 0 for any other error.
func statusOf(err error) int {
	var refusal *apiError
	if errors.As(err, &refusal) {
		return refusal.status
	}
	return 0
}

// send makes a call, and returns the answer to one that was not refused. The caller closes its body.
func (e *engine) send(ctx context.Context, method, path string, query url.Values) (*http.Response, error) {
	u := url.URL{Scheme: "http", Host: "docker", Path: path, RawQuery: query.Encode()}
	if e.version != "" {
		u.Path = "/v" + e.version + path
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask docker: %w", err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var said struct{ Message string }
	if json.Unmarshal(body, &said) != nil || said.Message == "" {
		said.Message = string(bytes.TrimSpace(body))
	}
	refusal := &apiError{resp.StatusCode, strconv.Quote(said.Message[:min(len(said.Message), maxSaid)])}
	return nil, fmt.Errorf("docker refuses %s %.80q: %w", method, path, refusal)
}

// call makes a call and reads its answer into a value; nil: the answer does not matter.
func (e *engine) call(ctx context.Context, method, path string, query url.Values, into any) error {
	resp, err := e.send(ctx, method, path, query)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("read docker's answer to %s: %w", path, err)
	case len(body) > maxAnswer:
		return fmt.Errorf("docker's answer to %s has more than %d MiB", path, maxAnswer>>20)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read docker's answer to %s: %w", path, err)
	}
	return nil
}

// image is an image of the daemon, as it says.
type image struct {
	ID       string `json:"Id"`
	ParentID string `json:"ParentId"`
	RepoTags []string
	// RepoDigests are names such as shop@sha256:…, of images that came from a registry.
	RepoDigests []string
	// Size is what its layers have, in bytes, and SharedSize what of that other images have too; -1: not asked for.
	Size, SharedSize int64
	Created          int64 // seconds
}

// noName is what the daemon says in place of a name, for an image without one.
const noName = "<none>"

// tags are the names with a tag, such as shop:1.
func (i image) tags() []string {
	return slices.DeleteFunc(slices.Clone(i.RepoTags), func(t string) bool { return strings.HasPrefix(t, noName) })
}

// refs are all names by which a job can find the image.
func (i image) refs() []string {
	digests := slices.DeleteFunc(slices.Clone(i.RepoDigests), func(t string) bool { return strings.HasPrefix(t, noName) })
	return append(i.tags(), digests...)
}

// name is the image in sentences.
func (i image) name() string {
	if refs := i.refs(); len(refs) > 0 {
		return refs[0]
	}
	return i.ID
}

// images lists all images, those without a name too.
func (e *engine) images(ctx context.Context) (all []image, err error) {
	return all, e.call(ctx, http.MethodGet, "/images/json", url.Values{"all": {"1"}}, &all)
}

// remove deletes a name, or by an id the image with all its names. What has gone already is no error.
func (e *engine) remove(ctx context.Context, ref string) error {
	err := e.call(ctx, http.MethodDelete, "/images/"+ref, url.Values{"force": {"1"}}, nil)
	if statusOf(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// tag gives an image a name, which another may have had.
func (e *engine) tag(ctx context.Context, id, ref string) error {
	colon := strings.LastIndexByte(ref, ':')
	if colon < 0 {
		return fmt.Errorf("tag an image: %.80q has no tag", ref)
	}
	return e.call(ctx, http.MethodPost, "/images/"+id+"/tag", url.Values{"repo": {ref[:colon]}, "tag": {ref[colon+1:]}}, nil)
}

// pruneUnused deletes all images that no container has, in one call.
func (e *engine) pruneUnused(ctx context.Context) error {
	return e.call(ctx, http.MethodPost, "/images/prune", url.Values{"filters": {`{"dangling":{"false":true}}`}}, nil)
}

// pruneBuilds deletes what builds have left, the oldest first, until at most so many bytes are kept.
func (e *engine) pruneBuilds(ctx context.Context, kept int64) error {
	query := url.Values{"all": {"1"}}
	if kept > 0 { // 0 means the same as none
		query.Set("keep-storage", strconv.FormatInt(kept, 10))
	}
	return e.call(ctx, http.MethodPost, "/build/prune", query, nil)
}

// usage is what the daemon has on its disk.
type usage struct {
	// LayersSize is what the layers of all images have, in bytes, each counted once.
	LayersSize int64
	Images     []image
	BuildCache []struct {
		Size   int64
		Shared bool // with images
	}
}

func (e *engine) usage(ctx context.Context) (u usage, err error) {
	return u, e.call(ctx, http.MethodGet, "/system/df", nil, &u)
}

// builds is what builds have left beside what images have too, in bytes.
func (u usage) builds() (sum int64) {
	for _, b := range u.BuildCache {
		if !b.Shared {
			sum += max(b.Size, 0)
		}
	}
	return sum
}
