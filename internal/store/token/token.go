// Package token makes page tokens: the key of the last row of a page, bound to the index that it orders. A
// token names a place in the order and not a position, so rows that come and go elsewhere do not move it.
package token

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// New returns the token of the page that follows the row with this key.
func New(index string, key ...string) string {
	// Strings always marshal.
	text, _ := json.Marshal(append([]string{index}, key...))
	return base64.RawURLEncoding.EncodeToString(text)
}

// Parse returns the key in a token of the index, which has so many parts, or nil for the empty token of a
// first page. Any other is a lifecycle.ErrPageToken.
func Parse(index, token string, parts int) ([]string, error) {
	if token == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil, Bad(index)
	}
	var key []string
	if err := json.Unmarshal(text, &key); err != nil || len(key) != parts+1 || key[0] != index {
		return nil, Bad(index)
	}
	return key[1:], nil
}

// Bad is the error for a token that the index did not give.
func Bad(index string) error { return fmt.Errorf("list %s: %w", index, lifecycle.ErrPageToken) }
