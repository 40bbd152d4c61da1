package lifecycle

import (
	"fmt"
	"time"
)

// Mirror is what a host needs to fetch the branch that its last run was of into the cache that holds git.
type Mirror struct {
	// URL is the repository's address for git, https://HOST/OWNER/NAME.git.
	URL    string `json:"url"`
	Branch string `json:"branch"`
	// Token reads the contents of this repository, and nothing else.
	Token     Secret    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// Format prints no secret: see Registration.
func (m Mirror) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{%s %s %s %s}", m.URL, m.Branch, m.Token, m.ExpiresAt.UTC().Format(time.RFC3339))
}

var _ fmt.Formatter = Mirror{}
