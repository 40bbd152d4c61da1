package iamsim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Document is a policy. Actions, resources and the values of conditions may be one or a list.
type Document struct {
	Version   string
	Statement []Statement
}

// Statement is one of a policy.
type Statement struct {
	Sid, Effect string
	Action      []string
	Resource    []string
	Condition   map[string]map[string]any `json:",omitempty"`
}

// Mutant is a policy with one clause changed.
type Mutant struct {
	// Clause says which, and how: POLICY SID CHANGE.
	Clause   string   `json:"-"`
	Policy   string   `json:"policy"`
	Document Document `json:"document"`
	// Actions are those of the statement. Cases with one of them are evaluated first.
	Actions []string `json:"actions"`
}

// Mutants are all policies that differ from a policy in one clause: without a statement, an action, a resource, a condition or one of its
// values; with every action of the service; with a resource in any region, in any account, or any at all; with another value; and with any
// value of a set where all were meant.
func Mutants(policy string, d Document) []Mutant {
	m := &mutator{policy: policy, document: d}
	for i, s := range d.Statement {
		m.at = i
		m.add("without the statement", func(d *Document) { d.Statement = slices.Delete(d.Statement, i, i+1) })
		m.actions(s)
		m.resources(s)
		for _, operator := range slices.Sorted(maps.Keys(s.Condition)) {
			for _, key := range slices.Sorted(maps.Keys(s.Condition[operator])) {
				m.conditions(operator, key, s.Condition[operator][key])
			}
		}
	}
	return m.all
}

type mutator struct {
	policy   string
	document Document
	at       int
	all      []Mutant
}

func (m *mutator) add(change string, do func(*Document)) {
	text, err := json.Marshal(m.document)
	if err != nil {
		panic(err) // it came from JSON
	}
	var d Document
	if err := json.Unmarshal(text, &d); err != nil {
		panic(err)
	}
	of := m.document.Statement[m.at]
	do(&d)
	m.all = append(m.all, Mutant{Clause: fmt.Sprintf("%s %s %s", m.policy, of.Sid, change), Policy: m.policy, Document: d, Actions: of.Action})
}

// change is add for the statement that the mutator is at.
func (m *mutator) change(change string, do func(*Statement)) {
	m.add(change, func(d *Document) { do(&d.Statement[m.at]) })
}

func (m *mutator) actions(s Statement) {
	services := map[string]bool{}
	for i, action := range s.Action {
		if len(s.Action) > 1 {
			m.change("without "+action, func(s *Statement) { s.Action = slices.Delete(s.Action, i, i+1) })
		}
		service, _, _ := strings.Cut(action, ":")
		if !services[service] {
			services[service] = true
			m.change("with "+service+":*", func(s *Statement) { s.Action = append(s.Action, service+":*") })
		}
	}
}

func (m *mutator) resources(s Statement) {
	for i, resource := range s.Resource {
		if len(s.Resource) > 1 {
			m.change("without "+resource, func(s *Statement) { s.Resource = slices.Delete(s.Resource, i, i+1) })
		}
		if resource == "*" {
			continue
		}
		m.change("with any resource for "+resource, func(s *Statement) { s.Resource[i] = "*" })
		parts := strings.SplitN(resource, ":", 6)
		for n, what := range []string{"region", "account"} {
			at := 3 + n
			if parts[at] == "" || parts[at] == "*" {
				continue
			}
			wide := slices.Clone(parts)
			wide[at] = "*"
			m.change("with any "+what+" for "+resource, func(s *Statement) { s.Resource[i] = strings.Join(wide, ":") })
		}
		if strings.HasSuffix(parts[5], "*") {
			continue
		}
		m.change("with what begins like "+resource, func(s *Statement) { s.Resource[i] += "*" })
	}
}

func (m *mutator) conditions(operator, key string, value any) {
	name := operator + " " + key
	m.change("without "+name, func(s *Statement) {
		if delete(s.Condition[operator], key); len(s.Condition[operator]) == 0 {
			delete(s.Condition, operator)
		}
		if len(s.Condition) == 0 {
			s.Condition = nil
		}
	})
	if set, ok := strings.CutPrefix(operator, "ForAllValues:"); ok {
		m.change("with any value for "+name, func(s *Statement) {
			s.Condition["ForAnyValue:"+set] = s.Condition[operator]
			delete(s.Condition, operator)
		})
	}
	values, several := value.([]any)
	if operator == "Null" {
		m.change("with true for "+name, func(s *Statement) { s.Condition[operator][key] = "true" })
		return
	}
	m.change("with another value for "+name, func(s *Statement) { s.Condition[operator][key] = "another" })
	if !several || len(values) < 2 {
		return
	}
	for i, v := range values {
		m.change(fmt.Sprintf("without %v for %s", v, name), func(s *Statement) { s.Condition[operator][key] = slices.Delete(slices.Clone(values), i, i+1) })
	}
}
