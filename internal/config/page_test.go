package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
)

// oidc is a page that alice may sign in to, with changes: "key: value", or "key: null" to leave one out.
func oidc(changes ...string) string {
	keys := []string{
		`issuer: "https://login.acme.com"`, "client_id: remuda", `redirect_url: "https://ci.acme.com/ui/oidc/callback"`, "session_key_file: /k", "emails: [alice@acme.com]",
	}
	for _, change := range changes {
		key, value, _ := strings.Cut(change, ": ")
		for i, one := range keys {
			if strings.HasPrefix(one, key+": ") {
				keys = append(keys[:i], keys[i+1:]...)
				break
			}
		}
		if value != "null" {
			keys = append(keys, change)
		}
	}
	return token + "page: {oidc: {" + strings.Join(keys, ", ") + "}}\n"
}

func TestPageRules(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"tokens":              {token + "page: {token_file: t}", `page.token_file: is "t"; write an absolute path`},
		"no person":           {oidc("emails: null"), `page.oidc: lists no people: set emails, domains, or groups; there is no way to allow every user of the issuer`},
		"an empty list":       {oidc("emails: []"), `page.oidc: lists no people`},
		"no issuer":           {oidc("issuer: null"), `page.oidc.issuer: is not the URL of an issuer`},
		"issuer in plaintext": {oidc(`issuer: "http://login.acme.com"`), `page.oidc.issuer: would send codes and secrets in plaintext; write https`},
		"issuer with a query": {oidc(`issuer: "https://login.acme.com?x"`), `page.oidc.issuer: is not the URL of an issuer`},
		"no client":           {oidc("client_id: null"), `page.oidc.client_id: is missing; write the client ID`},
		"client":              {oidc("client_id: \"a b\""), `page.oidc.client_id: is "a b"; write at most 255`},
		"secret":              {oidc("client_secret_file: s"), `page.oidc.client_secret_file: is "s"; write an absolute path`},
		"no way back":         {oidc("redirect_url: null"), `page.oidc.redirect_url: is not the URL of the page; write https://HOST/ui/oidc/callback`},
		"back in plaintext":   {oidc(`redirect_url: "http://ci.acme.com/ui/oidc/callback"`), `page.oidc.redirect_url: would send codes in plaintext; write https`},
		"back to another":     {oidc(`redirect_url: "https://ci.acme.com/ui/"`), `page.oidc.redirect_url: has the path "/ui/"; write https://HOST/ui/oidc/callback`},
		"no keys":             {oidc("session_key_file: null"), `page.oidc.session_key_file: is missing; write an absolute path`},
		"mail":                {oidc("emails: [alice]"), `page.oidc.emails[0]: is "alice"; write a mail address such as alice@acme.com`},
		"mail of any domain":  {oidc("emails: [\"*@acme.com@x\"]"), `page.oidc.emails[0]: is "*@acme.com@x"; write a mail address`},
		"mail twice":          {oidc("emails: [alice@acme.com, alice@acme.com]"), `page.oidc.emails[1]: is here twice`},
		"domain":              {oidc("domains: [\"@acme.com\"]"), `page.oidc.domains[0]: is "@acme.com"; write the domain of mail addresses such as acme.com`},
		"all domains":         {oidc("domains: [\"*\"]"), `page.oidc.domains[0]: is "*"`},
		"group":               {oidc("groups: [\"\"]"), `page.oidc.groups[0]: is ""; write the name of a group`},
		"no claim":            {oidc("groups_claim: \"\""), `page.oidc.groups_claim: is missing; write the name of a claim`},
		"claim":               {oidc("groups_claim: \"a b\""), `page.oidc.groups_claim: is "a b"; write the name of a claim`},
	} {
		_, err := config.Parse("f", []byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got:\n%v\nwant:\n%s", name, err, tt.want)
		}
	}
}

func TestAPageWithPeople(t *testing.T) {
	c, err := config.Parse("f", []byte(oidc()))
	if err != nil {
		t.Fatal(err)
	}
	want := &config.Page{OIDC: &config.OIDC{
		Issuer: "https://login.acme.com", ClientID: "remuda", RedirectURL: "https://ci.acme.com/ui/oidc/callback", SessionKeyFile: "/k", Emails: []string{"alice@acme.com"}, GroupsClaim: "groups",
	}}
	if diff := cmp.Diff(want, c.Page); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
}

// A page that fewer see than its address suggests is warned of.
func TestPageWarnings(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":       {token + "page: {}\nhttp: {addr: \"0.0.0.0:7080\"}", "page has neither token_file nor oidc, so it is shown only to callers from the machine that runs controld, though http.addr is 0.0.0.0:7080"},
		"nothing, here": {token + "page: {}", ""},
		"tokens":        {token + "page: {token_file: /t}\nhttp: {addr: \"0.0.0.0:7080\"}", ""},
		"people":        {oidc() + "http: {addr: \"0.0.0.0:7080\"}", ""},
		"people on one's own, and tokens": {
			strings.Replace(oidc(`redirect_url: "http://localhost:7080/ui/oidc/callback"`), "page:\n", "page:\n  token_file: /t\n", 1), "page.oidc.redirect_url is http://localhost:7080/ui/oidc/callback, so people sign in only from the machine that runs controld",
		},
		"people on one's own": {oidc(`redirect_url: "http://localhost:7080/ui/oidc/callback"`), "page.oidc.redirect_url is http://localhost:7080/ui/oidc/callback, so people sign in only from the machine that runs controld"},
	} {
		c, err := config.Parse("f", []byte(tt.text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		others := func(warning string) bool { return !strings.HasPrefix(warning, "page") }
		if got := strings.Join(slices.DeleteFunc(c.Warnings(), others), "\n"); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: the warnings are %q, want %q", name, got, tt.want)
		}
	}
}
