package inputs

import (
	"os"
	"strconv"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/github"
	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// maxPEM is the largest PEM file that is read, in bytes. A key has 2 KiB, the certificate
// authorities of a whole system have 250 KiB.
const maxPEM = 1 << 20

// github reads who calls GitHub. A fleet without hosts calls its issuer of ID tokens alone.
func (r *reader) github() {
	g, at := r.c.GitHub, r.root.At("github")
	var authorities []byte
	if g.CAFile != "" {
		if authorities = read(at.At("ca_file"), g.CAFile, "the certificate of an authority in PEM form", maxPEM); authorities != nil {
			r.authorities(at.At("ca_file"), "github.ca_file", g.CAFile, authorities)
		}
	}
	var err error
	if r.in.Transport, err = github.NewTransport(authorities); err != nil {
		at.At("ca_file").Errorf("%s: %v", g.CAFile, err)
	}
	switch {
	case r.c.WithoutHosts:
	case len(g.Apps) > 0:
		for i, a := range g.Apps {
			r.app(at.At("apps").Item(i), a)
		}
	case g.TokenEnv != "":
		r.in.Token = github.StaticToken(lifecycle.Secret(os.Getenv(g.TokenEnv)))
		if os.Getenv(g.TokenEnv) == "" {
			at.At("token_env").Errorf("the variable %s is empty; put the token in it", g.TokenEnv)
		}
		token(at.At("token_env"), r.in.Token)
	case g.TokenFile != "":
		r.in.Token = github.TokenFile(g.TokenFile)
		if there(at.At("token_file"), g.TokenFile) {
			token(at.At("token_file"), r.in.Token)
		}
	}
}

// app reads the key of an App.
func (r *reader) app(at strictyaml.Place, a config.GitHubApp) {
	app := github.App{AppID: int64(a.AppID), ClientID: a.ClientID}
	key := at.At("private_key_file")
	if a.PrivateKeyEnv != "" {
		key = at.At("private_key_env")
		if app.PrivateKey = lifecycle.Secret(os.Getenv(a.PrivateKeyEnv)); app.PrivateKey == "" {
			key.Errorf("the variable %s is empty; put the text of the PEM file in it", a.PrivateKeyEnv)
		}
	} else {
		app.PrivateKey = lifecycle.Secret(read(key, a.PrivateKeyFile, "the private key that GitHub gave for download", maxPEM))
	}
	if app.PrivateKey != "" && at.Fine() {
		if err := app.Check(); err != nil {
			key.Errorf("%s: %v", nameOf(a), err)
		}
	}
	r.in.Apps = append(r.in.Apps, app)
}

// nameOf is where the key of an App is from.
func nameOf(a config.GitHubApp) string {
	if a.PrivateKeyEnv != "" {
		return "the variable " + strconv.Quote(a.PrivateKeyEnv)
	}
	return a.PrivateKeyFile
}
