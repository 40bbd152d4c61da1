// Package snapshot writes a whole fleet to a file and answers from such a file: Take reads a fleet through its ports, and Open serves the
// FleetService from what was taken, by the code of the server and at the time of the snapshot. Nothing can be changed through it.
//
// The file is that of policy.Snapshot, which has what a scale-down decides by. Its part "fleet" is of this package.
package snapshot
