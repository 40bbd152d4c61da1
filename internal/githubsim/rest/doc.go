// Package rest holds the mechanics of the REST API: answers, errors, pages, rate limits, and the faults that a test asks for.
// It knows nothing of runs, jobs and runners.
package rest
