// Package proc reads what the kernel says about processes in /proc: who they are, whose they are, where they come from.
//
// The fields come from github.com/prometheus/procfs where it has them. What it lacks is read here: the bounds of the
// environment, the children of a process, and file descriptors and environments whose read errors must not be dropped.
package proc
