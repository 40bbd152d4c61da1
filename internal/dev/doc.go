// Package dev is what `controld dev` needs beside the daemon: its flags, the configuration
// that they make, its state directory, and the process of the GitHub stand-in. Everything
// runs on one machine and is reachable from that machine only.
package dev
