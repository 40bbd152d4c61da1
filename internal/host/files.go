package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// writeFile writes a file as a whole or not at all.
func writeFile(path string, data []byte) error {
	return writeFileMode(path, data, 0o600)
}

func writeFileMode(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new*")
	if err != nil {
		return withRemedy(err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(withRemedy(err), os.Remove(f.Name()))
	}
	return nil
}

// withRemedy adds what a person can do about a failure to write.
func withRemedy(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: free some space on its disk", err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: make its directory writable for agentd", err)
	}
	return err
}

// maxFile is the size of the largest file that is read, in bytes.
const maxFile = 1 << 20

// errNotRegular means that a job has put something else in the place of a file.
var errNotRegular = errors.New("not one of our files")

// readFile reads a small file. Jobs can write to the directories of many of them, so it
// follows no link, waits for no pipe and reads at most maxFile.
func readFile(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", path, errNotRegular, maxFile)
	}
	return data, err
}

// openRegular opens a regular file for reading, and nothing else.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO), errors.Is(err, fs.ErrPermission): // a link, a socket, no permission
		return nil, fmt.Errorf("%s: %w", path, errNotRegular)
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, errNotRegular)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// readNumber reads a small file with one number in it; 0 if it has none.
func readNumber(path string) int {
	data, err := readFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return n
}

// tailLimit is how much of a log goes into a detail, in bytes. It is more than is
// reported, since the agent removes secrets before it cuts.
const tailLimit = 8 << 10

// tailOf returns the end of what was written to a log since offset.
func tailOf(path string, offset int64) string {
	f, err := openRegular(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		offset = max(offset, info.Size()-tailLimit)
	}
	data, err := io.ReadAll(io.NewSectionReader(f, offset, tailLimit))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(data), ""))
}
