// Package appjwt checks the JSON web tokens by which a GitHub App authenticates itself.
package appjwt
