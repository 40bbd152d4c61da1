package cachestore

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"
)

// The kinds of entries in a layer.
const (
	kindFile      byte = 'f'
	kindDirectory byte = 'd'
	kindOpaque    byte = 'o' // a directory that hides the one below it
	kindLink      byte = 'l'
	kindWhiteout  byte = 'w' // hides what is below it
)

// line is one entry of a layer's list.
type line struct {
	kind   byte
	mode   uint32
	size   int64
	digest string // of the content of a file, or the target of a link; else empty
	path   string // "N/path", N being the number of the cache's path
}

func (l line) String() string {
	digest := l.digest
	if digest == "" {
		digest = "-"
	}
	return fmt.Sprintf("%c %o %d %s %s\n", l.kind, l.mode, l.size, digest, strconv.Quote(l.path))
}

func parseLine(text string) (line, error) {
	fields := strings.SplitN(text, " ", 5)
	if len(fields) != 5 || len(fields[0]) != 1 {
		return line{}, fmt.Errorf("%w: malformed line %q in a list", ErrCorrupt, shorten(text))
	}
	mode, modeErr := strconv.ParseUint(fields[1], 8, 32)
	size, sizeErr := strconv.ParseInt(fields[2], 10, 64)
	path, pathErr := strconv.Unquote(fields[4])
	if err := errors.Join(modeErr, sizeErr, pathErr); err != nil {
		return line{}, fmt.Errorf("%w: malformed line in a list: %w", ErrCorrupt, err)
	}
	l := line{kind: fields[0][0], mode: uint32(mode), size: size, digest: fields[3], path: path}
	if l.digest == "-" {
		l.digest = ""
	}
	return l, nil
}

// listWriter writes a list and its digest.
type listWriter struct {
	file   *os.File
	out    *bufio.Writer
	sum    hash.Hash
	prefix string // of the paths that are added
	lines  int
}

func newListWriter(path string) (*listWriter, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	w := &listWriter{file: f, sum: sha256.New()}
	w.out = bufio.NewWriterSize(io.MultiWriter(f, w.sum), 64<<10)
	return w, nil
}

func (w *listWriter) add(l line) error {
	w.lines++
	l.path = w.prefix + l.path
	_, err := w.out.WriteString(l.String())
	return err
}

// close returns the digest of the list.
func (w *listWriter) close() (digest string, err error) {
	err = errors.Join(w.out.Flush(), w.file.Close())
	return hex.EncodeToString(w.sum.Sum(nil)), err
}

// readList calls do for each line of a list, which must have the digest.
func readList(path, digest string, do func(l line) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	defer f.Close()
	sum := sha256.New()
	lines := bufio.NewScanner(io.TeeReader(f, sum))
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	for lines.Scan() {
		l, err := parseLine(lines.Text())
		if err != nil {
			return err
		}
		if err := do(l); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != digest {
		return fmt.Errorf("%w: the list of a layer has another digest", ErrCorrupt)
	}
	return nil
}
