package policy

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// MaxPattern is the longest pattern there may be, in bytes.
const MaxPattern = 256

// CheckPattern says what is wrong with a pattern of a Rule. Everything in it but * stands for itself, so
// nothing that has a meaning in other patterns is taken: it would never match what its author thought of.
func CheckPattern(p string) error {
	switch {
	case p == "":
		return errors.New("is empty")
	case len(p) > MaxPattern:
		return errors.New("is longer than 256 bytes")
	case strings.Contains(p, "***"):
		return errors.New("has three stars in a row")
	case strings.HasPrefix(p, "!") || strings.ContainsAny(p, `?[]{}\`) || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("has a character that is neither a star nor stands for itself")
	}
	return nil
}

func matchesAny(patterns []string, s string) bool {
	return s != "" && slices.ContainsFunc(patterns, func(p string) bool { return matches(p, s) })
}

// stars makes an expression of a quoted pattern. The longer pair comes first, so it wins.
var stars = strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`)

// matches holds a whole string against a pattern: * stands for any characters
// but a slash, ** for any. What CheckPattern refuses matches nothing.
func matches(pattern, s string) bool {
	if CheckPattern(pattern) != nil {
		return false
	}
	re, err := regexp.Compile(`(?s)\A` + stars.Replace(regexp.QuoteMeta(pattern)) + `\z`)
	return err == nil && re.MatchString(s)
}
