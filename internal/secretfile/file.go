package secretfile

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// settled is for how long a file must not have changed before what was read of it is
// kept: file systems tell times apart by a few milliseconds, some by a second or two,
// and one that is written twice in that time would look the same.
const settled = 3 * time.Second

// File gives the secrets of a file. An error names the file and nothing of what is in it. The file is read again once
// it was replaced or has changed, not for each call, since unknown callers can call too.
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
		if time.Since(info.ModTime()) > settled {
			last = info
		}
		if secrets, wrong = k.Read(path); wrong != nil {
			wrong = fmt.Errorf("read %ss: %w", k.Noun, wrong)
		}
		return secrets, wrong
	}
}
