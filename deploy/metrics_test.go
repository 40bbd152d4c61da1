package deploy_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is the page of metrics, by metric. A test of controld compares it with what is served.
type page struct {
	*testing.T
	parts map[string]string
}

func readMetrics(t *testing.T) page {
	t.Helper()
	p := page{t, map[string]string{}}
	for part := range strings.SplitSeq(read(t, "../docs/metrics.md"), "\n### ") {
		name, text, _ := strings.Cut(part, "\n")
		p.parts[strings.Trim(name, "`")] = text
	}
	return p
}

var (
	metricName = regexp.MustCompile(`remuda_[a-z_]+`)
	matcher    = regexp.MustCompile(`([a-z_]+)=~?"([^"]+)"`)
	grouping   = regexp.MustCompile(`by \(([^)]+)\)`)
	label      = regexp.MustCompile("(?m)^- `([a-z_]+)`: (.*(?:\n  .*)*)$")
	quoted     = regexp.MustCompile("`([A-Za-z_.-]+)`")
)

// metricsOf are the metrics that an expression asks for, each once.
func metricsOf(expr string) []string {
	names := map[string]bool{}
	for _, name := range metricName.FindAllString(expr, -1) {
		if base, ok := strings.CutSuffix(name, "_seconds_count"); ok {
			name = base + "_seconds"
		}
		names[strings.TrimSuffix(name, "_bucket")] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// check checks that the page has the metrics of an expression, the labels by which it groups, and the values that it asks for.
func (p page) check(of, expr string) {
	p.Helper()
	for _, name := range metricsOf(expr) {
		if p.parts[name] == "" {
			p.Errorf("%s asks for %s, which is not on the page of metrics", of, name)
		}
		for _, m := range matcher.FindAllStringSubmatch(expr, -1) {
			for value := range strings.SplitSeq(m[2], "|") {
				written := "`" + value + "`"
				if begin, ok := strings.CutSuffix(value, ".*"); ok {
					written = "`" + begin + "."
				}
				if !p.has(name, m[1]) || !strings.Contains(p.parts[name], written) {
					p.Errorf("%s asks for %s=%q, which %s does not have", of, m[1], value, name)
				}
			}
		}
		for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
			for by := range strings.SplitSeq(g[1], ", ") {
				if !p.has(name, by) {
					p.Errorf("%s groups by %s, which %s does not have", of, by, name)
				}
			}
		}
	}
}

// has reports whether a metric has a label. Prometheus adds that of the instance, and histograms have le.
func (p page) has(name, by string) bool {
	return by == "instance" || by == "le" && strings.Contains(p.parts[name], "Histogram") || strings.Contains(p.parts[name], "- `"+by+"`:")
}

// lists are the values of the labels of a metric whose values the page lists, with remarks in parentheses or after "or"; others may have any.
func (p page) lists(name string) map[string][]string {
	all := map[string][]string{}
	for _, l := range label.FindAllStringSubmatch(p.parts[name], -1) {
		bare := quoted.ReplaceAllString(remark.ReplaceAllString(l[2], ""), "")
		if strings.Trim(bare, ", \n") != "" {
			continue
		}
		for _, v := range quoted.FindAllStringSubmatch(l[2], -1) {
			all[l[1]] = append(all[l[1]], v[1])
		}
	}
	return all
}

var remark = regexp.MustCompile(` \([^)]*\)|, or one of [^:]*:`)

// TestTheRecordedDaysAreOnThePage: no label has a value that the page of metrics does not list.
func TestTheRecordedDaysAreOnThePage(t *testing.T) {
	page, seen := readMetrics(t), 0
	for _, path := range []string{goodDay, badDay} {
		day, names := readDay(t, path)
		for _, s := range day {
			name, labels, _ := strings.Cut(s.Series, "{")
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base, cut := strings.CutSuffix(name, suffix); cut && names[base] {
					name = base
				}
			}
			lists := page.lists(name)
			for _, l := range seriesLabel.FindAllStringSubmatch(labels, -1) {
				if list := lists[l[1]]; list != nil {
					if seen++; !slices.Contains(list, l[2]) {
						t.Errorf("%s has %s=%q, which docs/metrics.md does not list", name, l[1], l[2])
					}
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d values are compared", seen)
	}
}

var seriesLabel = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
