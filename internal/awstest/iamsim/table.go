package iamsim

import (
	"fmt"
	"os"
	"strings"
)

// Caller is who asks in the cases of a policy.
type Caller struct{ Principal, Partition, Region, Account string }

// Table is a file of cases. Empty lines and lines that begin with # say nothing. The others are
//
//	set NAME KEY=VALUE...                                     a part of a context
//	same CLAUSE: REASON                                       a mutant that no case can catch, since it means the same
//	false POLICY SID ISSUE: DETAIL # REASON                   a false alarm of the linter
//	ID POLICY allow|deny ACTION RESOURCE [SET|KEY=VALUE]... # NOTE
//
// ACTION and RESOURCE may be lists with commas: each pair is a case. A resource is SERVICE:NAME, of the caller's region and account, or an
// ARN, or *. A value with commas has several values.
type Table struct {
	Cases []Case
	// Same are the reasons by the names of clauses, False those by the findings of the linter.
	Same, False map[string]string

	sets    map[string]map[string]any
	callers map[string]Caller
}

// ReadTable reads cases of some policies, whose callers are given by the names of the policies.
func ReadTable(path string, callers map[string]Caller) (*Table, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read cases: %w", err)
	}
	table := &Table{Same: map[string]string{}, False: map[string]string{}, sets: map[string]map[string]any{}, callers: callers}
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := table.add(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return table, nil
}

func (t *Table) add(line string) error {
	line, note, _ := strings.Cut(line, " # ")
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "set":
		words := strings.Fields(rest)
		context, err := t.context(words[1:])
		t.sets[words[0]] = context
		return err
	case "same", "false":
		if note == "" {
			return fmt.Errorf("%q has no reason", line)
		}
		map[string]map[string]string{"same": t.Same, "false": t.False}[word][rest] = note
		return nil
	}
	return t.addCases(strings.Fields(line), strings.TrimSpace(note))
}

func (t *Table) addCases(words []string, note string) error {
	if len(words) < 5 {
		return fmt.Errorf("%q is no case", words)
	}
	caller, ok := t.callers[words[1]]
	want, known := map[string]string{"allow": Allowed, "deny": Denied}[words[2]]
	context, err := t.context(words[5:])
	if !ok || !known || err != nil {
		return fmt.Errorf("%q is no case: of a known policy %t, with a known outcome %t, %w", words, ok, known, err)
	}
	for action := range strings.SplitSeq(words[3], ",") {
		for resource := range strings.SplitSeq(words[4], ",") {
			t.Cases = append(t.Cases, Case{
				ID: words[0], Note: note, Policy: words[1], Principal: caller.Principal, Account: caller.Account,
				Action: action, Resource: caller.arn(resource), Context: context, Want: want,
			})
		}
	}
	return nil
}

func (c Caller) arn(resource string) string {
	service, name, ok := strings.Cut(resource, ":")
	switch {
	case !ok || service == "arn":
		return resource
	case service == "iam":
		return fmt.Sprintf("arn:%s:iam::%s:%s", c.Partition, c.Account, name)
	}
	return fmt.Sprintf("arn:%s:%s:%s:%s:%s", c.Partition, service, c.Region, c.Account, name)
}

// context is that of some words: each is the name of a set, or a key and its values.
func (t *Table) context(words []string) (map[string]any, error) {
	context := map[string]any{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			set, known := t.sets[word]
			if !known {
				return nil, fmt.Errorf("there is no set %q", word)
			}
			for k, v := range set {
				context[k] = v
			}
			continue
		}
		// These keys have several values in AWS, however many there are.
		if key == "dynamodb:LeadingKeys" || key == "aws:TagKeys" {
			context[key] = strings.Split(value, ",")
		} else {
			context[key] = value
		}
	}
	return context, nil
}
