// Package top is the live view of `remuda top`: what it shows, and what its keys do. It calls controld by Fleet alone.
package top

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/remuda-ci/remuda/internal/cli/view"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

// Fleet is the fleet that is looked at and steered.
type Fleet interface {
	Hosts(context.Context) ([]*remudav1.Instance, error)
	// Explain says why a host is here, in sentences.
	Explain(ctx context.Context, instanceID string) (string, error)
	// Hold keeps a host from being ended, and returns what the view says of it.
	Hold(ctx context.Context, instanceID string) (string, error)
	// Drain has a host leave once it has no run, and returns what the view says of it.
	Drain(ctx context.Context, instanceID string) (string, error)
}

// Options are what a view is made of.
type Options struct {
	Fleet Fleet
	// Hosts are what was read before the view begins.
	Hosts []*remudav1.Instance
	Now   func() time.Time
	// Every is how often the fleet is read.
	Every time.Duration
	Color bool
}

// mode is what keys are for.
type mode int

const (
	listing mode = iota
	filtering
	reading // the explanation of one host
	asking  // whether to drain
)

// Model is the state of the view. Update changes it and View draws it; both are without calls.
type Model struct {
	Options
	ctx context.Context

	readAt time.Time
	err    error // of the last reading
	note   string

	mode mode
	// selected is the id of a host, so that the choice stays with it when rows move.
	selected string
	order    view.Order
	reverse  bool
	words    string // of the filter
	// shown are the hosts that pass the filter, in their order: see arrange.
	shown []*remudav1.Instance

	// about is the host that is explained, or that is asked about: the chosen one may leave before the answer.
	about       string
	explanation string
	scrolled    int // lines of the explanation

	width, height int
}

// New is the view at its start. Its calls end with ctx.
func New(ctx context.Context, o Options) *Model {
	m := &Model{Options: o, ctx: ctx, readAt: o.Now(), order: view.OrderPool}
	m.arrange()
	m.choose(0)
	return m
}

// The messages of calls that are over, and of time.
type (
	ticked struct{}
	loaded struct {
		hosts []*remudav1.Instance
		at    time.Time
		err   error
	}
	explained struct {
		host, text string
		err        error
	}
	ordered struct {
		said string
		err  error
	}
)

// Init begins to wait for the next reading.
func (m *Model) Init() tea.Cmd { return m.wait() }

func (m *Model) wait() tea.Cmd { return tea.Tick(m.Every, func(time.Time) tea.Msg { return ticked{} }) }

func (m *Model) load() tea.Msg {
	hosts, err := m.Fleet.Hosts(m.ctx)
	return loaded{hosts, m.Now(), err}
}

func (m *Model) explain(host string) tea.Cmd {
	return func() tea.Msg {
		text, err := m.Fleet.Explain(m.ctx, host)
		return explained{host, text, err}
	}
}

func (m *Model) steer(do func(context.Context, string) (string, error), host string) tea.Cmd {
	return func() tea.Msg {
		said, err := do(m.ctx, host)
		return ordered{said, err}
	}
}

// Update takes one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case ticked:
		return m, m.load
	case loaded:
		return m, m.loaded(msg)
	case explained:
		m.explained(msg)
	case ordered:
		m.note = msg.said
		if msg.err != nil {
			m.note = msg.err.Error()
		}
		return m, nil
	}
	return m, nil
}

// loaded takes what was read. What was read before stays if a reading fails.
func (m *Model) loaded(msg loaded) tea.Cmd {
	m.err = msg.err
	if msg.err == nil {
		at := m.row()
		m.Hosts, m.readAt = msg.hosts, msg.at
		m.arrange()
		if m.row() < 0 {
			m.choose(at) // the chosen host has left: the one in its place is chosen
		}
	}
	if m.mode == reading {
		return tea.Batch(m.wait(), m.explain(m.about))
	}
	return m.wait()
}

func (m *Model) explained(msg explained) {
	switch {
	case msg.host != m.about:
	case msg.err != nil:
		m.explanation = msg.err.Error()
	default:
		m.explanation = msg.text
	}
}

// arrange brings the hosts that pass the filter into their order. It is called when hosts, order or filter have changed, and not for each key: a fleet
// may have 10,000 hosts.
func (m *Model) arrange() {
	hosts := slices.Clone(m.Hosts)
	view.SortBy(hosts, m.order, m.Now())
	if m.reverse {
		slices.Reverse(hosts)
	}
	m.shown = hosts
	if m.words == "" {
		return
	}
	rows := view.Hosts(hosts, m.Now(), true).Rows
	m.shown = nil
	for i, h := range hosts {
		var line strings.Builder
		for _, cell := range rows[i] {
			line.WriteString(cell.Shown() + " ")
		}
		if strings.Contains(strings.ToLower(line.String()), strings.ToLower(m.words)) {
			m.shown = append(m.shown, h)
		}
	}
}

// row is the index of the chosen host among those that are shown; -1 if it is not among them.
func (m *Model) row() int {
	return slices.IndexFunc(m.shown, func(h *remudav1.Instance) bool { return h.GetInstanceId() == m.selected })
}

// choose chooses the host of a row, or the nearest there is.
func (m *Model) choose(row int) {
	if len(m.shown) == 0 {
		m.selected = ""
		return
	}
	m.selected = m.shown[min(max(row, 0), len(m.shown)-1)].GetInstanceId()
}
