package signin

import (
	"slices"
	"strings"
	"unicode"

	"github.com/remuda-ci/remuda/internal/lifecycle/mailaddress"
)

// Allowed are the people who may sign in: those who are in one of the lists.
type Allowed struct {
	// Emails and Domains count for mail addresses that the issuer has verified. They are in lower case.
	Emails, Domains []string
	// Groups are as the claim GroupsClaim has them.
	Groups      []string
	GroupsClaim string
}

func (a Allowed) empty() bool { return len(a.Emails)+len(a.Domains)+len(a.Groups) == 0 }

// person is one who signs in. A session has what is shown, and what is on the lists.
type person struct {
	Subject string `json:"-"`
	// Name is what the page shows.
	Name string
	// Mail is the verified address, in lower case; empty: there is none.
	Mail string `json:",omitempty"`
	// Groups are those of Allowed that the person is in, at most maxGroups.
	Groups []string `json:",omitempty"`
}

// admits reports whether a person may sign in, or stay so.
func (a Allowed) admits(p person) bool {
	_, domain, _ := strings.Cut(p.Mail, "@")
	return p.Mail != "" && (slices.Contains(a.Emails, p.Mail) || slices.Contains(a.Domains, domain)) ||
		slices.ContainsFunc(p.Groups, func(group string) bool { return slices.Contains(a.Groups, group) })
}

// maxGroups bounds those that are kept: one is enough, and a cookie is short.
const maxGroups = 4

// maxSubject is how long the name of a person at an issuer may be, in bytes (OpenID Connect Core, section 2), and maxName how much of a name is
// shown, in characters.
const maxSubject, maxName = 255, 60

// personOf is the person that claims describe.
func (a Allowed) personOf(subject string, claims map[string]any) person {
	p := person{Subject: subject}
	if mail, _ := claims["email"].(string); claims["email_verified"] == true && mailaddress.Form.MatchString(mail) {
		p.Mail = strings.ToLower(mail)
	}
	for _, group := range texts(claims[a.GroupsClaim]) {
		if slices.Contains(a.Groups, group) && len(p.Groups) < maxGroups {
			p.Groups = append(p.Groups, group)
		}
	}
	username, _ := claims["preferred_username"].(string)
	name, _ := claims["name"].(string)
	for _, one := range []string{p.Mail, username, name, subject} {
		if p.Name = shown(one); p.Name != "" {
			break
		}
	}
	return p
}

// texts is a claim that is a list of texts, or one text.
func texts(claim any) (all []string) {
	if one, ok := claim.(string); ok {
		return []string{one}
	}
	list, _ := claim.([]any)
	for _, item := range list {
		if one, ok := item.(string); ok {
			all = append(all, one)
		}
	}
	return all
}

// shown is a name without what does not print, such as marks that turn the text around, and not longer than fits.
func shown(name string) string {
	letters := []rune(strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)))
	return string(letters[:min(len(letters), maxName)])
}
