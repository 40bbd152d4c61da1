// Package table prints aligned columns, with colors where they help.
package table

import (
	"bufio"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Style is how a cell looks on a terminal.
type Style string

// The styles, as the codes of ANSI.
const (
	Plain  Style = ""
	Good   Style = "32" // green
	Warn   Style = "33" // yellow
	Bad    Style = "31" // red
	Faint  Style = "2"
	Strong Style = "1"
)

// Cell is one field of a row.
type Cell struct {
	Text  string
	Style Style
}

// Table is rows below a head. Each row has as many cells as the head.
type Table struct {
	Head []string
	Rows [][]Cell
}

// Row is a row of plain cells.
func Row(texts ...string) []Cell {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	return cells
}

// gap is what is between two columns.
const gap = "  "

// Write prints the table. An empty cell is "-", so that columns can be counted.
func (t Table) Write(out io.Writer, color bool) error {
	w := bufio.NewWriter(out)
	widths := t.widths()
	head := make([]Cell, len(t.Head))
	for i, text := range t.Head {
		head[i] = Cell{text, Strong}
	}
	writeRow(w, head, widths, color)
	for _, row := range t.Rows {
		writeRow(w, row, widths, color)
	}
	return w.Flush()
}

func (t Table) widths() []int {
	widths := make([]int, len(t.Head))
	for i, text := range t.Head {
		widths[i] = utf8.RuneCountInString(text)
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.Shown()))
		}
	}
	return widths
}

// Shown is what is printed: "-" for nothing, and no character that a terminal would obey.
func (c Cell) Shown() string {
	text := Printable(c.Text)
	if text == "" {
		return "-"
	}
	return text
}

// Printable is a line without the characters that a terminal would obey.
func Printable(text string) string { return strings.Map(printable, text) }

// printable keeps control characters, which a reason may carry, from the terminal, and those that change the direction of writing.
func printable(c rune) rune {
	if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) {
		return ' '
	}
	return c
}

func writeRow(w *bufio.Writer, row []Cell, widths []int, color bool) {
	for i, cell := range row {
		text := cell.Shown()
		_, _ = w.WriteString(Paint(text, cell.Style, color)) // Flush returns the error
		if i < len(row)-1 {
			_, _ = w.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)) + gap)
		}
	}
	_ = w.WriteByte('\n')
}

// Paint is the text in its style.
func Paint(text string, style Style, color bool) string {
	if !color || style == Plain {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}
