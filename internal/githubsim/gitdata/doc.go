// Package gitdata is as much of a repository as starts a workflow run by a push: trees, commits and branches, made over REST.
package gitdata
