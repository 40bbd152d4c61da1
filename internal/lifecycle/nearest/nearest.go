// Package nearest finds what a misspelled word may have meant.
package nearest

import (
	"slices"
	"strings"
)

// Of returns the known word that word is short for, or else the one that is at most half its letters
// away from it, so that two letters swapped in a word of three are still found; or "".
func Of(word string, known []string) string {
	const longest = 64 // no key of ours is longer, so nothing is near beyond it
	if len(word) > longest {
		return ""
	}
	known = slices.Sorted(slices.Values(known)) // the keys of a mapping come in any order, and the answer is always the same
	short := func(k string) bool { return len(word) > 1 && strings.HasPrefix(k, strings.ToLower(word)) }
	if i := slices.IndexFunc(known, short); i >= 0 {
		return known[i]
	}
	best, bestDistance := "", 0
	for _, k := range known {
		d := Distance(strings.ToLower(word), k)
		if d <= (len(k)+1)/2 && (best == "" || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best
}

// Distance counts the letters to insert, delete or replace (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
