package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/remuda-ci/remuda/internal/policy"
)

// Write writes a snapshot for people: each row has a line.
func Write(w io.Writer, s policy.Snapshot) error {
	text, err := format(s)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func format(s policy.Snapshot) ([]byte, error) {
	fleet := s.Fleet
	if s.Fleet != nil {
		s.Fleet = json.RawMessage(`{}`)
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	if fleet != nil {
		head, found := bytes.CutSuffix(text, []byte("{}\n}"))
		if !found {
			return nil, errors.New("the snapshot does not end with its part fleet")
		}
		b := bytes.NewBuffer(head)
		if err := lines(b, fleet, "  ", depthOfRows); err != nil {
			return nil, err
		}
		b.WriteString("\n}")
		text = b.Bytes()
	}
	if text = append(text, '\n'); len(text) > policy.MaxSnapshot {
		return nil, fmt.Errorf("the snapshot has %d bytes, and may have %d: the fleet has too many hosts for one", len(text), policy.MaxSnapshot)
	}
	return text, nil
}

// depthOfRows is how deep lists of rows are in the part: the part, rows, the kind.
const depthOfRows = 3

// lines writes a value with a line for each member of an object, down to a depth, and for each item of a list there.
func lines(b *bytes.Buffer, text json.RawMessage, indent string, depth int) error {
	begin, end := byte('{'), byte('}')
	if len(text) > 0 && text[0] == '[' {
		begin, end = '[', ']'
	}
	if depth == 0 || len(text) < 3 || text[0] != begin {
		b.Write(text)
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil { // the bracket
		return err
	}
	b.WriteByte(begin)
	for first := true; d.More(); first = false {
		if !first {
			b.WriteByte(',')
		}
		b.WriteString("\n" + indent + "  ")
		if begin == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "%q: ", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		below := depth - 1
		if begin == '[' {
			below = 0
		}
		if err := lines(b, value, indent+"  ", below); err != nil {
			return err
		}
	}
	b.WriteString("\n" + indent)
	b.WriteByte(end)
	return nil
}
