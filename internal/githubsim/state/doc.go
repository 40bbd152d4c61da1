// Package state holds the rows that the stand-in keeps: runners, runs, jobs, tokens and Apps, in GitHub's words, and the logs of jobs.
package state
