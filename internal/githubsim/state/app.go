package state

import (
	"crypto/rsa"
	"fmt"
	"slices"
	"strings"
	"time"
)

// App is a GitHub App, with the accounts that it is installed on.
type App struct {
	ID            int64             `json:"id"`
	ClientID      string            `json:"client_id"`
	Slug          string            `json:"slug"`
	Key           string            `json:"key"` // PEM, as it was given
	Permissions   map[string]string `json:"permissions"`
	Events        []string          `json:"events"`
	Installations []Installation    `json:"installations"`
	CreatedAt     time.Time         `json:"created_at"`

	PublicKey *rsa.PublicKey `json:"-"` // of Key
}

// Installation is an app on one account, for all its repositories.
type Installation struct {
	ID        int64     `json:"id"`
	Owner     string    `json:"owner"`
	CreatedAt time.Time `json:"created_at"`
}

func (i Installation) NodeID() string {
	return fmt.Sprintf("MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9u%d", i.ID)
}

func (a *App) On(owner string) *Installation {
	i := slices.IndexFunc(a.Installations, func(in Installation) bool { return strings.EqualFold(in.Owner, owner) })
	if i < 0 {
		return nil
	}
	return &a.Installations[i]
}
