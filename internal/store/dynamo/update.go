package dynamo

import (
	"maps"
	"strings"
)

// update builds the expression of an update.
type update struct {
	sets, removes []string
	names         map[string]string
	values        item
}

func newUpdate() *update { return &update{names: map[string]string{}, values: item{}} }

// when adds what the expression of a condition speaks of.
func (u *update) when(c condition) *string {
	maps.Copy(u.names, c.names)
	maps.Copy(u.values, c.values)
	return &c.expression
}

// to gives the attribute the value that the row has, and removes it if the row has none.
func (u *update) to(row item, attribute string) {
	u.names["#"+attribute] = attribute
	value, ok := row[attribute]
	if !ok {
		u.removes = append(u.removes, "#"+attribute)
		return
	}
	u.values[":"+attribute] = value
	u.sets = append(u.sets, "#"+attribute+" = :"+attribute)
}

// increment adds one to a number, which is 0 while it is missing.
func (u *update) increment(attribute string) {
	u.names["#"+attribute] = attribute
	u.values[":0"], u.values[":1"] = number(0), number(1)
	u.sets = append(u.sets, "#"+attribute+" = if_not_exists(#"+attribute+", :0) + :1")
}

// move takes the value of one attribute to another.
func (u *update) move(from, to string) {
	u.names["#"+from], u.names["#"+to] = from, to
	u.sets = append(u.sets, "#"+to+" = #"+from)
	u.removes = append(u.removes, "#"+from)
}

func (u *update) expression() *string {
	var parts []string
	if len(u.sets) > 0 {
		parts = append(parts, "SET "+strings.Join(u.sets, ", "))
	}
	if len(u.removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(u.removes, ", "))
	}
	text := strings.Join(parts, " ")
	return &text
}
