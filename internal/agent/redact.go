package agent

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/remuda-ci/remuda/internal/lifecycle"
)

// logLimit is how much of a log is searched for secrets, in bytes. It is more than
// is kept: what is cut off later must be whole during the search.
const logLimit = 16 << 10

// shortestSecret is the length of the shortest secret that is searched for in encoded text, in bytes.
const shortestSecret = 8

// hidden replaces a secret: it is how lifecycle.Secret prints itself.
var hidden = lifecycle.Secret("").String()

// shape matches what looks like a secret. The first group is kept.
type shape struct {
	// words are in lower case. Every match has one of them. Most texts have none and need no search.
	words []string
	form  *regexp.Regexp
}

// names are the words of names that say what their value is.
var names = []string{"token", "secret", "passw", "key", "jitconfig", "_pat", "sig", "credential"}

// shapes are needed beside the known secrets: a log may contain secrets that the agent does not know.
var shapes = []shape{
	// Keys in PEM, also if only one end of them is left.
	{[]string{"-----begin "}, regexp.MustCompile(`(?s)()-----BEGIN [^-]{0,80}-----.*?(?:-----END [^-]{0,80}-----|\z)`)},
	{[]string{"-----end "}, regexp.MustCompile(`(?s)()\A.*-----END [^-]{0,80}KEY-----`)},
	// Headers: to the end of the line, since the scheme may be any.
	{[]string{"authorization", "cookie", "x-aws-ec2-metadata-token"},
		regexp.MustCompile(`(?i)((?:authorization|cookie|x-aws-ec2-metadata-token)["']?\s*[:=][ \t]*)[^\r\n]+`)},
	{[]string{"bearer", "basic", "remoteauth"}, regexp.MustCompile(`(?i)(\b(?:bearer|basic|remoteauth)\s+)[A-Za-z0-9+/=_.~-]{16,}`)},
	// Arguments of config.sh and its like: --token XYZ, --pat=XYZ.
	{[]string{"-token", "-pat", "-jitconfig", "-password", "-secret"},
		regexp.MustCompile(`(?i)(--?(?:token|pat|jitconfig|password|secret)\b(?:\s+|\s*=\s*))\S+`)},
	// Names that say what their value is. Prose such as "token: expired" stays.
	{names, regexp.MustCompile(`(?i)((?:token|secret|passw(?:or)?d|api_?key|access_?key|private_?key|jitconfig|_pat|signature|credential|\bsig)` +
		`[a-z_-]{0,20}\\?["']?\s*[:=]\s*\\?["'])[^"'\r\n]{4,}`)},
	{names, regexp.MustCompile(`(?i)((?:token|secret|passw(?:or)?d|api_?key|access_?key|private_?key|jitconfig|_pat|signature|credential|\bsig)` +
		`[a-z_-]{0,20}=)[^\s"',;&]{4,}`)},
	{names, regexp.MustCompile(`(?i)((?:token|secret|passw(?:or)?d|api_?key|access_?key|private_?key|jitconfig)[a-z_-]{0,20}:\s*)[^\s"',;&]{16,}`)},
	// The private parts of an RSA key, as the runner writes them.
	{[]string{`"`}, regexp.MustCompile(`("(?:d|p|q|dp|dq|inverseQ)"\s*:\s*")[^"]{16,}`)},
	{[]string{"://"}, regexp.MustCompile(`(://)[^/\s@]+@`)},
	// GitHub, AWS, and JSON in base64: a JWT or a JIT configuration.
	{[]string{"gh"}, regexp.MustCompile(`()(?:gh[opsur]_|github_pat_)[A-Za-z0-9_.-]{8,}`)},
	{[]string{"akia", "asia", "abia", "acca"}, regexp.MustCompile(`()(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}`)},
	{[]string{"eyj"}, regexp.MustCompile(`()eyJ[A-Za-z0-9+/=_.-]{16,}`)},
}

// folded returns a text in which every letter that a form with (?i) takes for one of a to z is that letter.
// Lower case alone would leave the long s (U+017F).
func folded(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// hide replaces what has the shape. fold is the text folded.
func (p shape) hide(s, fold string) string {
	if !slices.ContainsFunc(p.words, func(w string) bool { return strings.Contains(fold, w) }) {
		return s
	}
	return p.form.ReplaceAllString(s, "${1}"+hidden)
}

var (
	// escapes are the colours of a terminal.
	escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)
	// escaped matches words in URL encoding, encoded what may be base64, and word
	// what may be a piece of a secret.
	escaped = regexp.MustCompile(`[^\s"']*%[0-9A-Fa-f]{2}[^\s"']*`)
	encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}={0,2}`)
	word    = regexp.MustCompile(`[A-Za-z0-9+/=_.~-]{8,}`)
)

// redact returns the end of a text without the known secrets, whole or in pieces, plain, in base64 or in URL
// encoding, and without anything that has the shape of a secret. The result is valid UTF-8 and has no control
// characters except line breaks and tabs.
func redact(s string, known ...lifecycle.Secret) string {
	s = withoutControls(strings.ToValidUTF8(whole(s), "\uFFFD"))
	s = hidePlain(s, known)
	// A secret of a few letters would be found in every second decoded word.
	known = slices.DeleteFunc(slices.Clone(known), func(k lifecycle.Secret) bool { return len(k) < shortestSecret })
	if strings.Contains(s, "%") {
		s = escaped.ReplaceAllStringFunc(s, func(w string) string {
			if text, err := url.QueryUnescape(w); err == nil && hidePlain(text, known) != text {
				return hidden
			}
			return w
		})
	}
	return encoded.ReplaceAllStringFunc(s, func(w string) string {
		if holdsSecret(w, known) {
			return hidden
		}
		return w
	})
}

// whole returns the last logLimit bytes, beginning after a word that was cut.
func whole(s string) string {
	if len(s) <= logLimit {
		return s
	}
	s = s[len(s)-logLimit:]
	if i := strings.IndexFunc(s, unicode.IsSpace); i >= 0 {
		return s[i:]
	}
	return ""
}

func withoutControls(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, escapes.ReplaceAllString(s, ""))
}

// hidePlain hides secrets that are not encoded.
func hidePlain(s string, known []lifecycle.Secret) string {
	for _, secret := range known {
		if secret != "" {
			s = strings.ReplaceAll(s, secret.Reveal(), hidden)
		}
	}
	if len(known) > 0 {
		s = word.ReplaceAllStringFunc(s, func(w string) string {
			for _, secret := range known {
				if strings.Contains(secret.Reveal(), w) {
					return hidden
				}
			}
			return w
		})
	}
	fold := folded(s)
	for _, p := range shapes {
		if without := p.hide(s, fold); without != s {
			s, fold = without, folded(without)
		}
	}
	return s
}

// holdsSecret reports whether a word is base64 of something with a secret.
func holdsSecret(w string, known []lifecycle.Secret) bool {
	w = base64Alphabet.Replace(w)
	// A piece of a longer text may begin anywhere in a group of four.
	for skip := range 4 {
		part := w[skip:]
		if len(part)%4 == 1 { // no whole byte
			part = part[:len(part)-1]
		}
		text, err := base64.RawStdEncoding.DecodeString(part)
		if err != nil || !legible.Match(text) {
			continue
		}
		if plain := string(text); hidePlain(plain, known) != plain {
			return true
		}
	}
	return false
}

// legible is what a decoded text must contain to be searched. Most words are not base64 and decode to noise.
var legible = regexp.MustCompile(fmt.Sprintf(`[!-~]{%d}`, shortestSecret))

// base64Alphabet converts the URL alphabet of base64 into the standard one, without padding.
var base64Alphabet = strings.NewReplacer("-", "+", "_", "/", "=", "")
