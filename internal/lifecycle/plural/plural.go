// Package plural writes numbers of things as people say them: "1 host", "2 hosts".
package plural

import "fmt"

// Of is a number with the word for one or for more: Of(1, "host", "hosts") is "1 host".
func Of[N ~int | ~int32 | ~int64](n N, one, more string) string {
	return fmt.Sprintf("%d %s", n, Word(n, one, more))
}

// Word is the word for one or for more, for a number that is elsewhere in the sentence.
func Word[N ~int | ~int32 | ~int64](n N, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
