package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// compactAt is how many bytes the journal grows beyond what was last alive in it before it is rewritten.
const compactAt = 32 << 20

// Journal keeps the rows of the stand-in: one JSON line per write, the last one of a key counts. It is rewritten at start and
// when it has grown by compactAt. It is written before a call is answered, so a killed process loses nothing; it is not synced,
// since the stand-in need not survive the machine.
type Journal struct {
	path  string
	File  *os.File // where it writes; a test puts a full disk in its place
	size  int64
	limit int64
}

// Entry is one line. A null value is a deletion.
type Entry struct {
	Kind  string          `json:"kind"`
	ID    string          `json:"id"`
	Value json.RawMessage `json:"value"`
}

type Key struct{ Kind, ID string }

// Open reads the journal in dir, or begins one, and returns the rows alive in it.
func Open(dir string) (*Journal, map[Key]json.RawMessage, error) {
	j := &Journal{path: filepath.Join(dir, "journal.jsonl")}
	rows, err := j.compact()
	if err != nil {
		return nil, nil, err
	}
	return j, rows, nil
}

// compact rewrites the file with only what is alive, in its place atomically.
func (j *Journal) compact() (map[Key]json.RawMessage, error) {
	rows, order, err := readJournal(j.path)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	next, err := os.OpenFile(j.path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("rewrite journal: %w", err)
	}
	size, err := writeRows(next, rows, order)
	if err == nil {
		err = os.Rename(next.Name(), j.path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("rewrite journal: %w", err), next.Close())
	}
	if j.File != nil {
		if err := j.File.Close(); err != nil {
			return nil, fmt.Errorf("close old journal: %w", err)
		}
	}
	j.File, j.size, j.limit = next, size, size+compactAt
	return rows, nil
}

func writeRows(f *os.File, rows map[Key]json.RawMessage, order []Key) (int64, error) {
	w := bufio.NewWriter(f)
	var size int64
	for _, k := range order {
		line, err := json.Marshal(Entry{k.Kind, k.ID, rows[k]})
		if err != nil {
			return 0, err
		}
		n, err := w.Write(append(line, '\n'))
		if err != nil {
			return 0, err
		}
		size += int64(n)
	}
	return size, w.Flush()
}

// readJournal takes every whole line. A last line cut short by a kill was never answered for, so it is left out.
func readJournal(path string) (map[Key]json.RawMessage, []Key, error) {
	rows := map[Key]json.RawMessage{}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return rows, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	seen := map[Key]bool{}
	var order []Key
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, nil, fmt.Errorf("%s line %d: %w", path, n, err)
		}
		k := Key{e.Kind, e.ID}
		if bytes.Equal(e.Value, []byte("null")) {
			delete(rows, k)
			continue
		}
		rows[k] = e.Value
		if !seen[k] {
			seen[k] = true
			order = append(order, k)
		}
	}
	live := order[:0]
	for _, k := range order {
		if _, ok := rows[k]; ok {
			live = append(live, k)
		}
	}
	return rows, live, nil
}

// Write appends the entries in one write. On failure nothing of them stays in the file.
func (j *Journal) Write(entries []Entry) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	for _, e := range entries {
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("encode %s %s: %w", e.Kind, e.ID, err)
		}
	}
	n, err := j.File.WriteAt(buf.Bytes(), j.size)
	if err != nil {
		return errors.Join(fmt.Errorf("write journal: %w", err), j.File.Truncate(j.size))
	}
	j.size += int64(n)
	if j.size > j.limit {
		_, err = j.compact()
	}
	return err
}

func (j *Journal) Close() error { return j.File.Close() }
