// Package greet greets.
package greet

import "strings"

// Hello is the greeting for name.
func Hello(name string) string { return "Hello, " + strings.TrimSpace(name) + "!" }
