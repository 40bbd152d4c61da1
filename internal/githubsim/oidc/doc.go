// Package oidc signs ID tokens as token.actions.githubusercontent.com does.
package oidc
