package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// What is written lies between two markers of its name.
func begins(name string) string { return "<!-- report: " + name + " -->" }
func ends(name string) string   { return "<!-- end of " + name + " -->" }

// between is what the page has for a name.
func between(page, name string) (text string, ok bool) {
	_, rest, found := strings.Cut(page, begins(name)+"\n")
	text, _, ended := strings.Cut(rest, ends(name))
	return text, found && ended
}

// replace puts text in the place of what the page has for a name.
func replace(page, name, text string) (string, error) {
	old, ok := between(page, name)
	if !ok {
		return page, fmt.Errorf("the page has no place for %s", name)
	}
	head, rest, _ := strings.Cut(page, begins(name)+"\n"+old)
	return head + begins(name) + "\n" + text + rest, nil
}

// noFigure begins the sentence of a part without figures.
const noFigure = "No figure: "

// render is the text of a part: its table, what stands beside it, and the command that measures it again.
func (p part) render(f figures, err error) string {
	var s strings.Builder
	fmt.Fprintf(&s, "\n### %s\n\n%s\n\n", p.title, p.about)
	var rows strings.Builder
	for _, name := range p.cases(f) {
		rows.WriteString(p.row(f, name))
	}
	switch {
	case rows.Len() > 0 && err != nil:
		fmt.Fprintf(&s, "%s%s\n%sof the rest, since %v.\n\n", p.head(), rows.String(), noFigure, err)
	case rows.Len() > 0:
		s.WriteString(p.head() + rows.String() + "\n")
	case err != nil:
		fmt.Fprintf(&s, "%s%v.\n\n", noFigure, err)
	default:
		fmt.Fprintf(&s, "%sit has not been measured on a quiet machine yet.\n\n", noFigure)
	}
	if p.beside != nil {
		fmt.Fprintf(&s, "`ONLY='%s' make peers` measures it again.\n\n", p.beside.only)
		return s.String()
	}
	fmt.Fprintf(&s, "`make bench-report PARTS=%s` measures it again.\n\n", p.name)
	return s.String()
}

// cases are the rows of the table.
func (p part) cases(f figures) []string {
	if p.beside != nil {
		return p.beside.cases(f)
	}
	return slices.DeleteFunc(slices.Clone(f.names), p.limits)
}

func (p part) head() string {
	if p.beside != nil {
		return p.beside.head()
	}
	titles, line := "| case |", "|:--|"
	for _, c := range p.columns {
		titles, line = titles+" "+c.title+" |", line+"--:|"
	}
	return titles + " limit | reached |\n" + line + "--:|--:|\n"
}

func (p part) row(f figures, name string) string {
	if p.beside != nil {
		return "| " + strings.Join(p.beside.cells(f, name), " | ") + " |\n"
	}
	var s strings.Builder
	fmt.Fprintf(&s, "| %s |", name)
	for _, c := range p.columns {
		s.WriteString(" " + cell(f, name, c) + " |")
	}
	limit, reached := "-", "-"
	if p.limit != nil {
		limit, reached = p.limit(f, name)
	}
	fmt.Fprintf(&s, " %s | %s |\n", limit, reached)
	return s.String()
}

// cell is a median, with the spread if there is more than one run.
func cell(f figures, name string, c column) string {
	v, ok := f.median(name, c.unit)
	switch {
	case !ok:
		return "-"
	case len(f.values[name][c.unit]) == 1:
		return number(v * c.times())
	}
	return fmt.Sprintf("%s ± %.0f %%", number(v*c.times()), 100*f.spread(name, c.unit))
}

// number writes a value with three digits that count.
func number(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// machine says on what was measured last.
func machine() string {
	var fs unix.Statfs_t
	kind := "unknown"
	if err := unix.Statfs(os.TempDir(), &fs); err == nil {
		kind = fmt.Sprintf("of type %#x", fs.Type)
		if name, ok := map[int64]string{0xef53: "ext4", 0x01021994: "tmpfs", 0x9123683e: "btrfs", 0x58465342: "xfs", 0x794c7630: "overlayfs"}[int64(fs.Type)]; ok {
			kind = name
		}
	}
	return fmt.Sprintf("\nMeasured on %d cores of %s, file system %s, %s.\n\n", runtime.NumCPU(), cpuModel(), kind, runtime.Version())
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "an unknown processor"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "an unknown processor"
}
