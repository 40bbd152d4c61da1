// Package policy holds decisions that are not about the life of one host: who may ask for what, and which
// jobs of a pool get a host now. All of it is pure: functions of facts that return what and why.
package policy
