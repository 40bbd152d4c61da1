// Package units runs the tasks of a host as transient units of systemd, which outlive the
// program that started them.
package units
