// Package host proves a host under a real systemd: the image scripts, the life
// of a host from its boot to its power-off, its self-termination, hostile jobs
// and the packages. Each machine is a container that systemd-nspawn boots, for
// an instance that moto's EC2 has; controld runs beside them as a process.
//
// Everything is behind the build tag testhost and needs root: `make test-host`
// makes the root file system, runs the tests and cleans up.
package host
