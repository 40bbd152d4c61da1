// Package aws is what the AWS adapters have in common: how the SDK is set up,
// how often and how long a call is tried, what its errors mean, and a count of
// the calls that were really made. It knows none of the adapters.
package aws
