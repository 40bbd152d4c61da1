package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/remuda-ci/remuda/internal/cli/table"
	"github.com/remuda-ci/remuda/internal/cli/view"
	"github.com/remuda-ci/remuda/internal/lifecycle/plural"
)

// around is how many lines are not the list: the sum, the news, the head of the table and the keys.
const around = 4

// page is how many hosts the screen has room for.
func (m *Model) page() int { return max(m.height-around, 1) }

// View draws the screen. The renderer cuts lines that are too long.
func (m *Model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen, v.WindowTitle = true, "remuda top"
	return v
}

func (m *Model) screen() string {
	if m.height == 0 {
		return "" // its size is not known yet
	}
	lines := []string{m.sum(), m.news()}
	if m.mode == reading {
		text := m.text()
		lines = append(lines, text[min(m.scrolled, len(text)-1):]...)
	} else {
		lines = append(lines, m.table()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines[:m.height-1], m.paint(help[m.mode], table.Faint)), "\n")
}

// Picture is what the view shows of all hosts, without keys.
func (m *Model) Picture() string {
	if len(m.shown) == 0 {
		return m.sum() + "\n"
	}
	var b strings.Builder
	_ = view.Hosts(m.shown, m.Now(), false).Write(&b, m.Color) // a Builder takes everything
	return m.sum() + "\n" + b.String()
}

func (m *Model) paint(text string, style table.Style) string {
	return table.Paint(text, style, m.Color)
}

// sum is the first line: how many hosts there are in which states.
func (m *Model) sum() string {
	states, busy := map[string]int{}, 0
	for _, h := range m.Hosts {
		states[view.State(h)]++
		if h.GetBusy() {
			busy++
		}
	}
	parts := []string{fmt.Sprintf("%s, %d busy", plural.Of(len(m.Hosts), "host", "hosts"), busy)}
	for _, state := range slices.SortedFunc(maps.Keys(states), func(a, b string) int {
		return slices.Index(view.States, a) - slices.Index(view.States, b)
	}) {
		parts = append(parts, fmt.Sprintf("%d %s", states[state], state))
	}
	line := strings.Join(parts, ", ") + "; by " + string(m.order)
	if m.reverse {
		line += ", reversed"
	}
	return m.paint(line+"; read at "+m.readAt.UTC().Format(time.TimeOnly)+" UTC", table.Strong)
}

// news is the second line: what is asked, what is typed, what went wrong, or what the last order did.
func (m *Model) news() string {
	switch {
	case m.mode == asking:
		return m.paint("Drain "+m.about+"? It leaves once it has no run, and that cannot be taken back. [y/N]", table.Warn)
	case m.mode == filtering:
		return "filter: " + table.Printable(m.words) + "_"
	case m.err != nil:
		return m.paint(table.Printable("not read: "+m.err.Error()), table.Bad)
	case m.note != "":
		return table.Printable(m.note)
	case m.words != "":
		return "only with " + table.Printable(m.words) + "; esc shows all"
	}
	return ""
}

// table is the head and the rows around the chosen host, which is marked. All rows are written, so that columns are as wide wherever one is in the list.
func (m *Model) table() []string {
	if len(m.shown) == 0 {
		return []string{"There are no such hosts."}
	}
	chosen := m.row()
	t := view.Hosts(m.shown, m.Now(), false)
	for i := range t.Rows[chosen] {
		t.Rows[chosen][i].Style = table.Plain // the row has one style
	}
	var b strings.Builder
	_ = t.Write(&b, m.Color) // a Builder takes everything
	rows := strings.Split(b.String(), "\n")
	from := max(min(chosen-m.page()/2, len(m.shown)-m.page()), 0)
	lines := []string{"  " + rows[0]}
	for i := from; i < min(from+m.page(), len(m.shown)); i++ {
		if i == chosen {
			lines = append(lines, m.paint("> "+rows[i+1], reversed))
			continue
		}
		lines = append(lines, "  "+rows[i+1])
	}
	return lines
}

// reversed has the colors of text and background exchanged.
const reversed table.Style = "7"

// text is the explanation of the chosen host in lines of the width of the screen.
func (m *Model) text() []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(m.explanation, "\n"), "\n") {
		lines = append(lines, strings.Split(ansi.Wrap(table.Printable(line), m.width, ""), "\n")...)
	}
	return lines
}
