package top

import (
	"slices"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/remuda-ci/remuda/internal/cli/view"
)

// help names the keys of a mode.
var help = map[mode]string{
	listing:   "up/down choose   enter why   s sort   r reverse   / filter   h hold 1h   d drain   q quit",
	filtering: "type a part of a host, pool, repository, run, job or label   enter keep   esc show all",
	reading:   "up/down scroll   esc back   q quit",
	asking:    "y drain   any other key: nothing is done",
}

// press takes a key.
func (m *Model) press(key tea.KeyPressMsg) tea.Cmd {
	if key.String() == "ctrl+c" {
		return tea.Quit
	}
	switch m.mode {
	case filtering:
		m.edit(key)
		return nil
	case reading:
		return m.read(key.String())
	case asking:
		return m.answer(key.String())
	}
	return m.list(key.String())
}

// moves are how far keys move the choice. Those of a page are a page, and those of the ends are more than any list.
func (m *Model) moves(key string) (by int, moves bool) {
	const end = 1 << 30
	by, moves = map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -m.page(), "pgdown": m.page(), "home": -end, "g": -end, "end": end, "G": end,
	}[key]
	return by, moves
}

func (m *Model) list(key string) tea.Cmd {
	if by, moves := m.moves(key); moves {
		m.choose(m.row() + by)
		return nil
	}
	m.note = ""
	switch key {
	case "q":
		return tea.Quit
	case "s":
		m.order = view.Orders[(slices.Index(view.Orders, m.order)+1)%len(view.Orders)]
		m.arrange()
	case "r":
		m.reverse = !m.reverse
		m.arrange()
	case "/":
		m.mode = filtering
	case "esc":
		m.filter("")
	case "enter", "h", "d":
		return m.choice(key)
	}
	return nil
}

// choice takes a key about the chosen host.
func (m *Model) choice(key string) tea.Cmd {
	m.about = m.selected
	switch {
	case m.about == "":
		m.note = "there is no host"
	case key == "enter":
		m.mode, m.explanation, m.scrolled = reading, "asking controld", 0
		return m.explain(m.about)
	case key == "h":
		m.note = "holding " + m.about
		return m.steer(m.Fleet.Hold, m.about)
	default:
		m.mode = asking
	}
	return nil
}

// edit changes the filter as it is typed.
func (m *Model) edit(key tea.KeyPressMsg) {
	switch key.String() {
	case "enter":
		m.mode = listing
	case "esc":
		m.mode = listing
		m.filter("")
	case "backspace":
		_, last := utf8.DecodeLastRuneInString(m.words)
		m.filter(m.words[:len(m.words)-last])
	default:
		m.filter(m.words + key.Text)
	}
}

// filter shows what has the words, and chooses the first host if the chosen one is not shown.
func (m *Model) filter(words string) {
	m.words = words
	m.arrange()
	if m.row() < 0 {
		m.choose(0)
	}
}

func (m *Model) read(key string) tea.Cmd {
	if by, moves := m.moves(key); moves {
		m.scrolled = max(min(m.scrolled+by, len(m.text())-m.page()), 0)
		return nil
	}
	switch key {
	case "q":
		return tea.Quit
	case "esc", "enter", "left":
		m.mode = listing
	}
	return nil
}

func (m *Model) answer(key string) tea.Cmd {
	m.mode = listing
	if key != "y" && key != "Y" {
		m.note = "nothing was done"
		return nil
	}
	m.note = "draining " + m.about
	return m.steer(m.Fleet.Drain, m.about)
}
