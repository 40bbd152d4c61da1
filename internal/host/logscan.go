package host

import (
	"bytes"
	"errors"
	"io"

	"github.com/remuda-ci/remuda/internal/safefile"
)

// logScan searches a log that is still being written for a text. It reads what is new in
// chunks of fixed size, whatever the length of the lines.
type logScan struct {
	start  startRecord
	offset int64
	found  bool
}

// scanChunk bounds the memory of a scan, in bytes.
const scanChunk = 64 << 10

func (c *logScan) contains(path string, b startRecord, text []byte) bool {
	if c.start != b {
		*c = logScan{start: b, offset: b.LogOffset}
	}
	if c.found {
		return true
	}
	f, err := safefile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == c.offset {
		return false
	} else if info.Size() < c.offset {
		c.offset = 0 // it was truncated
	}
	buf := make([]byte, scanChunk)
	for {
		n, err := f.ReadAt(buf, c.offset)
		if bytes.Contains(buf[:n], text) {
			c.found = true
			return true
		}
		if n < len(buf) || (err != nil && !errors.Is(err, io.EOF)) {
			c.offset += int64(max(0, n-len(text)))
			return false
		}
		// The text may lie across the end of the chunk.
		c.offset += int64(n - len(listening))
	}
}
