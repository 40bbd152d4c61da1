package provision

import (
	"errors"
	"fmt"
)

// ErrSpecDiffers means that the request id belongs to a request with another spec.
var ErrSpecDiffers = errors.New("the same request_id was used with another body")

// ShortError says that a request did not get its hosts by its deadline.
type ShortError struct {
	RequestID string
	Ready     int
	Wanted    int
	Minimum   int
	// Why says how many were ready and what was missing.
	Why string
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("request %s: %s; at least %d are needed", e.RequestID, e.Why, e.Minimum)
}

// ReleasedError says that the run was released. A release ends all requests that were
// made for the run before it.
type ReleasedError struct {
	RunID string
}

func (e *ReleasedError) Error() string {
	return fmt.Sprintf("run %s was released after this request was made; hosts for it now need a new request", e.RunID)
}
