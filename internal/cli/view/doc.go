// Package view turns answers of controld into tables. Its functions are pure: they take the messages and the time of now.
package view
