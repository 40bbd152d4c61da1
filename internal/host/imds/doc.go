// Package imds reads what an EC2 instance says about itself to the programs on it: its
// identity, the key of its rows in the store, and whether EC2 is about to reclaim it. It
// asks the instance metadata service, version 2 only.
package imds
