package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/netresearch/go-cron"
)

// cronField is one of the fields of an expression, for sentences about it.
type cronField struct {
	name     string
	min, max int
	names    []string
}

var cronFields = []cronField{
	{"second", 0, 59, nil}, {"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day of month", 1, 31, nil},
	{"month", 1, 12, strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")},
	{"day of week", 0, 7, strings.Fields("SUN MON TUE WED THU FRI SAT")},
}

// cronItem is one of the items of a list in a field. What it means, and whether
// it is in bounds, the library says.
var cronItem = regexp.MustCompile(`^(\*|\?|[0-9A-Za-z]+(?:-[0-9A-Za-z]+)?)(/[0-9]+|#[0-9A-Za-z]+)?$`)

// wrongValue is a sentence on the first value that its field cannot have, in an
// expression that the library refuses; empty: it refuses something else.
func wrongValue(fields []string) string {
	for i, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			parts := cronItem.FindStringSubmatch(item)
			for value := range strings.SplitSeq(parts[1], "-") {
				if !cronFields[i].allows(value) {
					return fmt.Sprintf("%s %.40s: must be %s", cronFields[i].name, value, cronFields[i].values())
				}
			}
			if strings.HasPrefix(parts[2], "/") && strings.Trim(parts[2], "/0") == "" {
				return fmt.Sprintf("%s %.40s: a step must be at least 1", cronFields[i].name, item)
			}
		}
	}
	return ""
}

// lastDays are what a day of month may be beside a number.
var lastDays = regexp.MustCompile(`^(?i)(L|LW|[0-9]+W)$`)

func (f cronField) allows(value string) bool {
	if value == "*" || value == "?" || f.name == "day of month" && lastDays.MatchString(value) {
		return true
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return slices.Contains(f.names, strings.ToUpper(value))
	}
	return f.min <= n && n <= f.max
}

func (f cronField) values() string {
	s := fmt.Sprintf("%d to %d", f.min, f.max)
	if len(f.names) > 0 {
		s += fmt.Sprintf(", or %s to %s", f.names[0], f.names[len(f.names)-1])
	}
	return s
}

// star marks a field that holds always, in the library's sets of values.
const star = 1 << 63

// covers reports whether a schedule holds whenever the other does, on the same clock.
// True is certain; false may be wrong where the two name their days in different ways.
func covers(a, b *cron.SpecSchedule) bool {
	in := func(b, a uint64) bool { return b&^a&^star == 0 }
	if !in(b.Second, a.Second) || !in(b.Minute, a.Minute) || !in(b.Hour, a.Hour) || !in(b.Month, a.Month) {
		return false
	}
	anyDom, anyDow := a.Dom&star != 0, a.Dow&star != 0
	switch {
	case anyDom && anyDow:
		return true
	case len(a.DomConstraints)+len(a.DowConstraints)+len(b.DomConstraints)+len(b.DowConstraints) > 0:
		return a.Dom == b.Dom && a.Dow == b.Dow &&
			slices.Equal(a.DomConstraints, b.DomConstraints) && slices.Equal(a.DowConstraints, b.DowConstraints)
	case b.Dom&star != 0 && b.Dow&star != 0:
		return false
	}
	// Where both kinds of day are given either is enough.
	return (b.Dom&star != 0 || !anyDom && in(b.Dom, a.Dom)) && (b.Dow&star != 0 || !anyDow && in(b.Dow, a.Dow))
}

// always: it holds at any time, in any zone.
func always(s *cron.SpecSchedule) bool {
	return s.Second&s.Minute&s.Hour&s.Dom&s.Month&s.Dow&star != 0
}
