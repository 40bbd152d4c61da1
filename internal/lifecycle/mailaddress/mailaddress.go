// Package mailaddress has the form of the mail addresses by which people are allowed to sign in, for the configuration that lists them and for the
// sign-in that compares them.
package mailaddress

import "regexp"

// Form is one of ASCII, without quotes: of other letters there are some that look alike, or are the same in lower case.
var Form = regexp.MustCompile(`^[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}$`)
