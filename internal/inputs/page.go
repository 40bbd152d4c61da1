package inputs

import (
	"fmt"

	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/secretfile"
	"github.com/remuda-ci/remuda/internal/server"
)

// The kinds of secrets in the files of the page, apart from tokens. A key must not be guessable. The issuer decides how long the secret of a client is.
var (
	sessionKey   = secretfile.Kind{Noun: "session key", Least: 32}
	clientSecret = secretfile.Kind{Noun: "client secret", Least: 1}
)

// SessionKeys gives the keys of a file, which is read again when it changes.
func SessionKeys(path string) func() ([]lifecycle.Secret, error) { return sessionKey.File(path) }

// ClientSecret gives the one secret of a file, which is read again when it changes.
func ClientSecret(path string) func() (lifecycle.Secret, error) {
	all := clientSecret.File(path)
	return func() (lifecycle.Secret, error) {
		secrets, err := all()
		if err != nil {
			return "", err
		}
		if len(secrets) > 1 {
			return "", fmt.Errorf("%s holds %d client secrets; write one", path, len(secrets))
		}
		return secrets[0], nil
	}
}

// page reads the files by which the page knows its callers. Later an error in a file is reported at each call.
func (r *reader) page() {
	p := r.c.Page
	if p == nil {
		return
	}
	if at := r.root.At("page", "token_file"); there(at, p.TokenFile) {
		if _, err := server.TokenFile(p.TokenFile)(); err != nil {
			at.Errorf("%v", err)
		}
	}
	if p.OIDC == nil {
		return
	}
	if at := r.root.At("page", "oidc", "session_key_file"); there(at, p.OIDC.SessionKeyFile) {
		if _, err := SessionKeys(p.OIDC.SessionKeyFile)(); err != nil {
			at.Errorf("%v", err)
		}
	}
	if at := r.root.At("page", "oidc", "client_secret_file"); there(at, p.OIDC.ClientSecretFile) {
		if _, err := ClientSecret(p.OIDC.ClientSecretFile)(); err != nil {
			at.Errorf("%v", err)
		}
	}
}
