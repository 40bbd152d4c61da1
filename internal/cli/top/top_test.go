package top_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/remuda-ci/remuda/internal/cli/top"
	remudav1 "github.com/remuda-ci/remuda/proto/remuda/v1"
)

var now = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// fleet is hosts, and the orders that were given.
type fleet struct {
	hosts  []*remudav1.Instance
	err    error
	orders []string
}

func (f *fleet) Hosts(context.Context) ([]*remudav1.Instance, error) { return f.hosts, f.err }

func (f *fleet) Explain(_ context.Context, id string) (string, error) {
	return "It serves run 41. \x1b[31m\n" + strings.Repeat("Its job runs and is not done. ", 20) + "\n" + id + " ends the list.\n", f.err
}

func (f *fleet) Hold(_ context.Context, id string) (string, error) {
	f.orders = append(f.orders, "hold "+id)
	return "held", f.err
}

func (f *fleet) Drain(_ context.Context, id string) (string, error) {
	f.orders = append(f.orders, "drain "+id)
	return "drained", f.err
}

// person sits at the view. Each message is dealt with whole, with the calls that it makes.
type person struct {
	testing.TB
	fleet *fleet
	model tea.Model
}

func newPerson(t testing.TB, hosts int) *person {
	f := &fleet{}
	for i := range hosts {
		state := []remudav1.State{remudav1.State_STATE_RUNNING, remudav1.State_STATE_IDLE}[i%2]
		f.hosts = append(f.hosts, &remudav1.Instance{
			InstanceId: fmt.Sprintf("i-%03d", i), Pool: "default", Repository: "acme/shop", RunId: fmt.Sprint(40 + i), State: state, Busy: i%2 == 0,
			Threshold: timestamppb.New(now.Add(time.Duration(100-i) * time.Minute)), UpdateTime: timestamppb.New(now.Add(-time.Duration(i) * time.Minute)),
		})
	}
	p := &person{t, f, top.New(t.Context(), top.Options{Fleet: f, Hosts: f.hosts, Now: func() time.Time { return now }, Every: time.Hour})}
	p.see(tea.WindowSizeMsg{Width: 100, Height: 12})
	return p
}

// see gives a message to the model and makes the call that it asks for. Waiting for the next reading is left out.
func (p *person) see(msg tea.Msg) {
	var next tea.Cmd
	p.model, next = p.model.Update(msg)
	if _, waits := msg.(tea.WindowSizeMsg); next != nil && !waits {
		if got := next(); got != nil && fmt.Sprintf("%T", got) != "tea.QuitMsg" {
			p.model, _ = p.model.Update(got)
		}
	}
}

// read has the fleet read, as after each interval.
func (p *person) read() {
	p.Helper()
	next, _ := p.model.Update(top.Ticked)
	_, load := p.model.Update(top.Ticked)
	p.model, _ = next.Update(load())
}

func (p *person) press(keys ...string) {
	named := map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace, "end": tea.KeyEnd, "pgup": tea.KeyPgUp}
	for _, key := range keys {
		if code, ok := named[key]; ok {
			p.see(tea.KeyPressMsg{Code: code})
			continue
		}
		p.see(tea.KeyPressMsg{Code: rune(key[0]), Text: key})
	}
}

func (p *person) lines() []string { return strings.Split(p.model.View().Content, "\n") }

// chosen is the line of the chosen host.
func (p *person) chosen() string {
	i := slices.IndexFunc(p.lines(), func(l string) bool { return strings.HasPrefix(l, "> ") })
	if i < 0 {
		return ""
	}
	return p.lines()[i]
}

func TestChoice(t *testing.T) {
	for keys, want := range map[string]string{
		"": "i-000", "down": "i-002", "down down up": "i-002", "up": "i-000", "end": "i-039", "end pgup": "i-023", "G g": "i-000",
		"s s s": "i-039", "s s s r": "i-000", "s s s s": "i-039", "r": "i-000", "/ 4 7": "i-007", "/ 4 7 enter esc": "i-007", "/ z z esc": "i-000",
		"/ 4 8 backspace": "i-008", "/ i - 0 3 9 enter down": "i-039",
	} {
		t.Run(keys, func(t *testing.T) {
			p := newPerson(t, 40)
			p.press(strings.Fields(keys)...)
			if keys == "s s s" || keys == "s s s s" { // the choice stays with its host when rows move
				p.press("g")
			}
			if got := p.chosen(); !strings.Contains(got, want) {
				t.Errorf("chosen %q, want %s:\n%s", got, want, strings.Join(p.lines(), "\n"))
			}
		})
	}
}

// Whatever the size and the fleet, a screen has as many lines as the terminal.
func TestTheScreenFits(t *testing.T) {
	for _, hosts := range []int{0, 1, 7, 8, 9, 300} {
		for height := 1; height < 30; height++ {
			p := newPerson(t, hosts)
			p.see(tea.WindowSizeMsg{Width: 80, Height: height})
			for _, key := range []string{"end", "/", "esc", "enter"} {
				p.press(key)
				if n := len(p.lines()); n != height {
					t.Fatalf("%d hosts, height %d, after %s: %d lines", hosts, height, key, n)
				}
			}
		}
	}
}

func TestOrders(t *testing.T) {
	for keys, want := range map[string]string{
		"h": "hold i-000", "d y": "drain i-000", "d n": "", "d enter": "", "d esc y": "", "down h": "hold i-002", "/ z z enter h": "", "/ z z enter d y": "",
		"/ h d y": "",
	} {
		t.Run(keys, func(t *testing.T) {
			p := newPerson(t, 4)
			p.press(strings.Fields(keys)...)
			if got := strings.Join(p.fleet.orders, ", "); got != want {
				t.Errorf("ordered %q, want %q", got, want)
			}
		})
	}
}

func TestAnOrderThatFails(t *testing.T) {
	p := newPerson(t, 2)
	p.fleet.err = errors.New("not allowed")
	p.press("h")
	if got := p.lines()[1]; got != "not allowed" {
		t.Errorf("said %q", got)
	}
}

// A reading that fails is said, and the hosts stay with the time at which they were read.
func TestAReadingThatFails(t *testing.T) {
	p := newPerson(t, 2)
	p.fleet.err = errors.New("controld does not answer")
	p.read()
	if got := p.lines(); got[1] != "not read: controld does not answer" || !strings.Contains(p.chosen(), "i-000") {
		t.Errorf("shown:\n%s", strings.Join(got, "\n"))
	}
	p.fleet.err = nil
	p.read()
	if got := p.lines()[1]; got != "" {
		t.Errorf("afterwards it still says %q", got)
	}
}

// When the chosen host leaves, the one in its place is chosen, so that the next key meets a host that is seen.
func TestTheChosenHostLeaves(t *testing.T) {
	p := newPerson(t, 6)
	p.press("down")
	p.fleet.hosts = slices.DeleteFunc(slices.Clone(p.fleet.hosts), func(h *remudav1.Instance) bool { return h.GetInstanceId() == "i-002" })
	p.read()
	if got := p.chosen(); !strings.Contains(got, "i-004") {
		t.Errorf("chosen %q", got)
	}
	p.fleet.hosts = nil
	p.read()
	if p.press("h", "enter", "d", "y"); len(p.fleet.orders) != 0 {
		t.Errorf("ordered %v without a host", p.fleet.orders)
	}
}

// A host that leaves while a person is asked about it, or reads of it, is still what the answer and the text are about.
func TestTheHostThatIsAskedAboutLeaves(t *testing.T) {
	p := newPerson(t, 6)
	p.press("d")
	p.fleet.hosts = p.fleet.hosts[1:]
	p.read()
	if got := p.lines()[1]; !strings.HasPrefix(got, "Drain i-000?") {
		t.Errorf("it asks %q", got)
	}
	if p.press("y"); !slices.Equal(p.fleet.orders, []string{"drain i-000"}) {
		t.Errorf("ordered %v", p.fleet.orders)
	}
	p = newPerson(t, 6)
	p.press("enter")
	p.fleet.hosts = p.fleet.hosts[1:]
	p.read()
	if p.press("end"); !strings.Contains(strings.Join(p.lines(), "\n"), "i-000 ends the list.") {
		t.Errorf("it explains:\n%s", strings.Join(p.lines(), "\n"))
	}
}

// A host is explained in the width of the screen, without what a terminal would obey.
func TestExplanation(t *testing.T) {
	p := newPerson(t, 2)
	p.press("enter")
	for _, line := range p.lines() {
		if len(line) > 100 || strings.Contains(line, "\x1b") {
			t.Errorf("line %q", line)
		}
	}
	if got := p.lines()[2]; !strings.HasPrefix(got, "It serves run 41.") {
		t.Errorf("it begins with %q", got)
	}
	p.see(tea.WindowSizeMsg{Width: 100, Height: 8})
	p.press("end")
	if got := strings.Join(p.lines(), "\n"); !strings.Contains(got, "i-000 ends the list.") {
		t.Errorf("its end is not shown:\n%s", got)
	}
	if p.press("esc"); p.chosen() == "" {
		t.Error("the list is not back")
	}
}
