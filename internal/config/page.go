package config

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/remuda-ci/remuda/internal/config/strictyaml"
	"github.com/remuda-ci/remuda/internal/lifecycle/mailaddress"
)

// Page is the page for people, on the address of HTTP. Without TokenFile and OIDC callers on this machine alone see it.
type Page struct {
	// TokenFile has the tokens that let a browser in, one in each line.
	TokenFile string `yaml:"token_file"`
	// OIDC is nil when people do not sign in by OpenID Connect.
	OIDC *OIDC `yaml:"oidc"`
}

// OIDC is how people sign in to the page, and who may. A person must be in one of the lists: the issuer alone is no reason, since it may know people
// who have nothing to do with the fleet.
type OIDC struct {
	// Issuer is what ID tokens name as their issuer, exactly.
	Issuer   string `yaml:"issuer"`
	ClientID string `yaml:"client_id"`
	// ClientSecretFile has the secret of the client; empty: it is a public one.
	ClientSecretFile string `yaml:"client_secret_file"`
	// RedirectURL is where the issuer sends browsers back: the address of the page and OIDCPath.
	RedirectURL string `yaml:"redirect_url"`
	// SessionKeyFile has the keys of the cookies, one in each line. All replicas have the same.
	SessionKeyFile string `yaml:"session_key_file"`
	// Emails and Domains count where the issuer says that it has verified a mail address.
	Emails  []string `yaml:"emails"`
	Domains []string `yaml:"domains"`
	// Groups are those of the claim GroupsClaim.
	Groups      []string `yaml:"groups"`
	GroupsClaim string   `yaml:"groups_claim"`
}

// OIDCPath is the path of each OIDC.RedirectURL.
const OIDCPath = "/ui/oidc/callback"

// SetDefaults names the claim that most issuers have.
func (o *OIDC) SetDefaults() { o.GroupsClaim = "groups" }

// The forms of what an issuer knows.
var (
	oidcClient = regexp.MustCompile(`^[!-~]{1,255}$`)
	mailDomain = regexp.MustCompile(`^[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})+$`)
	oidcGroup  = regexp.MustCompile(`^[^\x00-\x1f]{1,255}$`)
	claimName  = regexp.MustCompile(`^[!-~]{1,255}$`)
)

func (p *Page) validate(at strictyaml.Place) {
	if p == nil {
		return
	}
	at.At("token_file").OptionalPath(p.TokenFile)
	if p.OIDC != nil {
		p.OIDC.validate(at.At("oidc"))
	}
}

func (o *OIDC) validate(at strictyaml.Place) {
	baseURL(at.At("issuer"), o.Issuer, "the URL of an issuer; write one such as https://accounts.google.com, exactly as the issuer writes it", "would send codes and secrets in plaintext")
	required(at.At("client_id"), o.ClientID, "the client ID")
	at.At("client_id").Match(o.ClientID, oidcClient, "at most 255 letters, digits and signs")
	at.At("client_secret_file").OptionalPath(o.ClientSecretFile)
	baseURL(at.At("redirect_url"), o.RedirectURL, "the URL of the page; write https://HOST"+OIDCPath, "would send codes in plaintext")
	if u, err := url.Parse(o.RedirectURL); err == nil && u.Path != OIDCPath {
		at.At("redirect_url").Errorf("has the path %.80q; write https://HOST%s", u.Path, OIDCPath)
	}
	at.At("session_key_file").Path(o.SessionKeyFile)
	if len(o.Emails)+len(o.Domains)+len(o.Groups) == 0 {
		at.Errorf("lists no people: set emails, domains, or groups; there is no way to allow every user of the issuer")
	}
	words(at.At("emails"), o.Emails, mailaddress.Form, "a mail address such as alice@acme.com")
	words(at.At("domains"), o.Domains, mailDomain, "the domain of mail addresses such as acme.com")
	words(at.At("groups"), o.Groups, oidcGroup, "the name of a group, as the issuer writes it")
	required(at.At("groups_claim"), o.GroupsClaim, "the name of a claim such as groups")
	at.At("groups_claim").Match(o.GroupsClaim, claimName, "the name of a claim such as groups")
}

func required(at strictyaml.Place, text, want string) {
	if text == "" {
		at.Errorf("is missing; write %s", want)
	}
}

// pageWarnings warn of a page that is shown to fewer callers than its address suggests, and of one whose callers could be seen.
func (c *Config) pageWarnings() []string {
	switch p := c.Page; {
	case p == nil:
		return nil
	case p.OIDC != nil && strings.HasPrefix(p.OIDC.RedirectURL, "http://"):
		return []string{"page.oidc.redirect_url is " + p.OIDC.RedirectURL + ", so people sign in only from the machine that runs controld"}
	case p.TokenFile != "" || p.OIDC != nil || isLoopback(c.HTTP.Addr):
		return nil
	}
	return []string{"page has neither token_file nor oidc, so it is shown only to callers from the machine that runs controld, though http.addr is " + c.HTTP.Addr}
}
