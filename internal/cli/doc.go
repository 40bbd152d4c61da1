// Package cli has what the command `remuda` does; the command lines themselves are in the main package.
//
// It speaks to controld by the contract alone and keeps nothing but its contexts:
//
//	remuda (cobra) ─▶ cli ─▶ connect ─▶ controld (gRPC)
//	                   │  └─▶ contexts (the file)
//	                   ├────▶ subject (what people type) ─▶ view (messages, now → tables) ─▶ table, output ─▶ stdout
//	                   └────▶ failure (what failed, the remedy, the exit code) ─▶ stderr
//
// App has the outside of one call: streams, environment, clock and the flags of every command. A command is a method of
// App that takes its own flags as a struct. It opens a session, calls controld, and hands the answer and the time of now to
// a pure function of view. Answers go to stdout, and everything else, such as progress, to stderr.
package cli
