package secretfile

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// settled is the age a file must have before what was read is reused without reading it again. File systems tell
// times apart by a few milliseconds, some by a second or two, and a file that is written twice in that time looks
// the same.
const settled = 3 * time.Second

// File gives the secrets of a file. An error names the file and nothing of what is in it. The file is read again once
// it was replaced or has changed, not for each call, since unknown callers can call too. A file that could not be read
// is tried again in the next call: without a free descriptor, for instance, it fails and does not change.
func (k Kind) File(path string) func() ([]lifecycle.Secret, error) {
	var (
		mu      sync.Mutex
		last    os.FileInfo // of the file as it was read; nil: to be read
		secrets []lifecycle.Secret
		wrong   error
	)
	return func() ([]lifecycle.Secret, error) {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read %ss: %w", k.Noun, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if last != nil && os.SameFile(info, last) && info.ModTime().Equal(last.ModTime()) && info.Size() == last.Size() {
			return secrets, wrong
		}
		last = nil
		text, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("read %ss: %w", k.Noun, err)
		}
		if time.Since(info.ModTime()) > settled {
			last = info
		}
		if secrets, wrong = k.split(path, text); wrong != nil {
			wrong = fmt.Errorf("read %ss: %w", k.Noun, wrong)
		}
		return secrets, wrong
	}
}
