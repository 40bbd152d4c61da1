// Package published makes histories of records of CI jobs that other people publish: files of public repositories at pinned commits. Neither the records
// nor what is made of them is in this repository. examples/history/README.md says what each of them has and lacks.
package published

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/remuda-ci/remuda/internal/history"
)

// Record is a published record of CI jobs.
type Record struct {
	// Name is that of the history that is made of it, without .csv.
	Name string
	// Repository is the "owner/name" on GitHub that has the files, and Commit is where they are read: 40 hexadecimal digits.
	Repository, Commit string
	Files              []File
	// Convert makes the jobs of a file. Its error says where the file is wrong. No job is in two files.
	Convert func(file []byte) (Converted, error)
}

// Records are all of them.
func Records() []Record { return []Record{Bitcoin(), OpenStates(), IREE()} }

// File is a file of a record. One of another size or sum is not read.
type File struct {
	// Path is from the root of the repository.
	Path string
	// Size is in bytes, and SHA256 in hexadecimal digits.
	Size   int64
	SHA256 string
}

// Converted is what a record, or a file of it, has.
type Converted struct {
	Jobs []history.Job
	// LeftOut counts the jobs of the record that are not among Jobs, by the reason.
	LeftOut map[Reason]int
}

// Reason says in a few words why a job is left out, as what follows "jobs that".
type Reason string

// The reasons.
const (
	reasonNoTime   Reason = "ended when they began, or before"
	reasonNoRunner Reason = "no runner ever had"
	reasonNoEnd    Reason = "had no end when they were last read"
	reasonCopy     Reason = "are copies of an earlier attempt's"
)

// leaveOut counts n jobs more that are left out.
func (c *Converted) leaveOut(why Reason, n int) {
	if c.LeftOut == nil {
		c.LeftOut = map[Reason]int{}
	}
	c.LeftOut[why] += n
}

// add adds what another file of the record has.
func (c *Converted) add(more Converted) {
	c.Jobs = append(c.Jobs, more.Jobs...)
	for why, n := range more.LeftOut {
		c.leaveOut(why, n)
	}
}

// Source is where the files of records are.
type Source interface {
	// Open opens a file by its path: OWNER/NAME/COMMIT, and the path in the repository.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
	// At is the address of the file of that path, for people.
	At(path string) string
}

// Read reads all files of the record and converts them. It calls progress with a line of text before each file.
func (r Record) Read(ctx context.Context, from Source, progress func(line string)) (Converted, error) {
	var all Converted
	for i, f := range r.Files {
		path := r.Repository + "/" + r.Commit + "/" + f.Path
		progress(fmt.Sprintf("%s: file %d of %d: %s of %s, %d KiB", r.Name, i+1, len(r.Files), f.Path, r.Repository, (f.Size+1023)>>10))
		data, err := f.read(ctx, from, path)
		if err != nil {
			return Converted{}, fmt.Errorf("read %s: %w", from.At(path), err)
		}
		converted, err := r.Convert(data)
		if err != nil {
			return Converted{}, fmt.Errorf("convert %s: %w", from.At(path), err)
		}
		all.add(converted)
	}
	if len(all.Jobs) == 0 {
		return Converted{}, fmt.Errorf("convert %s: there are no jobs in it", r.Name)
	}
	return all, nil
}

// read reads the file, and at most a byte more than it has to have.
func (f File) read(ctx context.Context, from Source, path string) ([]byte, error) {
	in, err := from.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(in, f.Size+1))
	sum := sha256.Sum256(data)
	switch n, got := int64(len(data)), hex.EncodeToString(sum[:]); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case n > f.Size:
		return nil, fmt.Errorf("it has more than its %d bytes, so it is not the file that was pinned", f.Size)
	case errors.Is(err, io.ErrUnexpectedEOF), err == nil && n < f.Size:
		return nil, fmt.Errorf("it ends after %d of %d bytes; try again", n, f.Size)
	case err != nil:
		return nil, fmt.Errorf("after %d of %d bytes: %w; try again", n, f.Size, err)
	case got != f.SHA256:
		return nil, fmt.Errorf("its SHA-256 is %s and not %s, so it is not the file that was pinned", got, f.SHA256)
	}
	return data, nil
}

// CSV is the history as a file that history.Load reads.
func (c Converted) CSV() ([]byte, error) {
	h := history.History{Jobs: c.Jobs}
	h.Sort()
	var b bytes.Buffer
	err := errors.Join(history.WriteHeading(&b), history.Write(&b, h.Jobs...))
	return b.Bytes(), err
}
