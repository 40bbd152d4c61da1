// Package remudav1 is the public contract of Remuda: its messages, their rules and FleetService, generated from the protos beside it.
package remudav1
