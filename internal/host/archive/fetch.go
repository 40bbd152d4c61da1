package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// DefaultURL is GitHub's server of archives, to which the URL of the runner's own downloads leads (api.github.com/repos/OWNER/REPO/tarball/SHA).
const DefaultURL = "https://codeload.github.com"

// Bounds of an archive, in bytes. That of actions/checkout has 0.4 MiB, and the largest of GitHub's own actions 20 MiB.
const (
	mostPacked   = 64 << 20
	mostUnpacked = 512 << 20
)

// Fetcher downloads archives of public actions. It has no token.
type Fetcher struct {
	// URL is of a server with archives at /OWNER/REPOSITORY/tar.gz/SHA.
	URL string
	// Transport is that of http.Client; nil: the usual one. No redirection is followed.
	Transport http.RoundTripper
}

// Fetch downloads the archive of an action to its path below a directory. There is either a whole archive of that commit afterwards, or nothing: the
// runner fails a job whose archive it cannot unpack.
func (f Fetcher) Fetch(ctx context.Context, a Action, dir string) error {
	at := filepath.Join(dir, a.Path())
	err := f.fetch(ctx, a, at+".part")
	if err == nil {
		err = os.Rename(at+".part", at)
	}
	if err == nil {
		return nil
	}
	if removeErr := os.Remove(at + ".part"); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	_ = os.Remove(filepath.Dir(at)) // unless it has another archive
	return fmt.Errorf("fetch %s/%s@%s: %w", a.Owner, a.Repository, a.SHA, err)
}

func (f Fetcher) fetch(ctx context.Context, a Action, to string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Join([]string{f.URL, a.Owner, a.Repository, "tar.gz", a.SHA}, "/"), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept-Encoding", "identity") // the archive itself is compressed
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := (&http.Client{Transport: f.Transport, CheckRedirect: stay}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", response.Status)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { // the user of jobs reads it
		return err
	}
	out, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	n, err := io.Copy(out, io.LimitReader(response.Body, mostPacked+1))
	switch {
	case err != nil:
		return err
	case n > mostPacked:
		return fmt.Errorf("it is larger than %d MiB", mostPacked>>20)
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := check(ctx, out, a.SHA); err != nil {
		return err
	}
	return out.Close()
}

// check reads a whole archive. It must have one directory, in which everything is, and be of the commit that it says it is of, if it does.
func check(ctx context.Context, archive io.Reader, sha string) error {
	unpacked, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	bounded := &boundedReader{ctx: ctx, from: unpacked, left: mostUnpacked}
	in := tar.NewReader(bounded)
	top := ""
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader { // git archive writes the commit there
			if of := h.PAXRecords["comment"]; of != "" && of != sha {
				return fmt.Errorf("it is of the commit %.40q", of)
			}
			continue
		}
		first, _, _ := strings.Cut(h.Name, "/")
		if first == "" || first == "." || first == ".." || top != "" && first != top {
			return fmt.Errorf("it has %.80q beside the directory %.80q", h.Name, top)
		}
		top = first
	}
	if top == "" {
		return errors.New("it is empty")
	}
	_, err = io.Copy(io.Discard, bounded) // to the checksum at its end
	return err
}

// boundedReader reads until its context ends, and not more than what is left.
type boundedReader struct {
	ctx  context.Context
	from io.Reader
	left int64
}

func (r *boundedReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.from.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, fmt.Errorf("it has more than %d MiB unpacked", mostUnpacked>>20)
	}
	return n, err
}
