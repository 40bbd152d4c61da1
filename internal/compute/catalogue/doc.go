// Package catalogue knows the EC2 instance types that hosts may have, and which
// of them satisfy a resource class. It is pure data and pure functions.
package catalogue
