// Package journal keeps rows in a file of JSON lines. The last line of a key is its value.
package journal
