package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/remuda-ci/remuda/internal/safefile"
)

// writeFile writes a file as a whole or not at all.
func writeFile(path string, data []byte) error {
	return writeFileMode(path, data, 0o600)
}

func writeFileMode(path string, data []byte, mode fs.FileMode) error {
	return withRemedy(safefile.Replace(path, data, mode, false))
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

// removeFiles removes files. Missing ones are not an error.
func removeFiles(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// readNumber reads a small file with one number in it; 0 if it has none.
func readNumber(path string) int {
	data, _ := safefile.Read(path)
	if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
		return n
	}
	return 0
}

// tailLimit is how much of a log goes into a detail, in bytes. It is more than is
// reported, since the agent removes secrets before it cuts.
const tailLimit = 8 << 10

// tailOf returns the end of what was written to a log since offset.
func tailOf(path string, offset int64) string {
	f, err := safefile.Open(path)
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
