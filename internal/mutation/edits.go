package mutation

import (
	"bytes"
	"cmp"
	"slices"
)

// edits are insertions into a text and replacements. What is put around a part is given before what is put around a part of that.
type edits struct{ all []edit }

type edit struct {
	at, length int
	text       string
	// rank orders edits at one place: parts that end there, from the inside out, come before those that begin there, from the outside in.
	rank int
}

func (e *edits) around(begin, end int, before, after string) {
	order := len(e.all) + 1
	e.all = append(e.all, edit{at: begin, text: before, rank: order}, edit{at: end, text: after, rank: -order})
}

func (e *edits) replace(at, length int, with string) {
	e.all = append(e.all, edit{at: at, length: length, text: with, rank: len(e.all) + 1})
}

func (e *edits) apply(text []byte) []byte {
	slices.SortStableFunc(e.all, func(a, b edit) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank)) })
	var out bytes.Buffer
	done := 0
	for _, edit := range e.all {
		out.Write(text[done:edit.at])
		out.WriteString(edit.text)
		done = edit.at + edit.length
	}
	out.Write(text[done:])
	return out.Bytes()
}
