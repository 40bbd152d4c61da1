package published

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// GitHub is where GitHub serves the files of public repositories.
const GitHub = "https://raw.githubusercontent.com"

// fileTimeout bounds the download of one file. The largest has 4 MiB, which takes a line of 0.3 Mbit/s two minutes.
const fileTimeout = 2 * time.Minute

// web is a Source that downloads.
type web struct {
	base   string
	client *http.Client
}

// Web is a Source that downloads from a server, such as GitHub.
func Web(base string) Source { return web{base, &http.Client{Timeout: fileTimeout}} }

func (w web) At(path string) string { return w.base + "/" + path }

func (w web) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.At(path), nil)
	if err != nil {
		return nil, err
	}
	response, err := w.client.Do(request)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w; try again, or without the internet from a copy (make months FROM=DIR)", unwrapped(err))
	case response.StatusCode == http.StatusOK:
		return response.Body, nil
	}
	_ = response.Body.Close() // it is not read
	if response.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("the server says %s: the repository, or this commit of it, is not public anymore; a copy of the file still does (make months FROM=DIR)", statusText(response.StatusCode))
	}
	return nil, fmt.Errorf("the server says %s; try again later", statusText(response.StatusCode))
}

// statusText is a status as HTTP names it. What a server writes beside the number may be anything.
func statusText(code int) string {
	return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
}

// unwrapped is the error of a request without the address, which is said already.
func unwrapped(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}

// Directory is a Source that reads files of this machine. They are below it as they are on a server.
type Directory string

// At is the path of the file.
func (d Directory) At(path string) string { return filepath.Join(string(d), filepath.FromSlash(path)) }

// Open opens the file.
func (d Directory) Open(_ context.Context, path string) (io.ReadCloser, error) {
	f, err := os.Open(d.At(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no such file; git show COMMIT:PATH in a clone of the repository makes it")
	}
	return f, unwrappedPath(err)
}

// unwrappedPath is the error without the path, which is said already.
func unwrappedPath(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}
