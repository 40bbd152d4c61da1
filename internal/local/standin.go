package local

import (
	"context"
	"io"
)

// Standin is a GitHub stand-in that runs alone, for a `controld serve`.
type Standin struct {
	GitHub *GitHub
	// Addr is where it listens, host:port.
	Addr string

	child *child
}

// StartStandin starts the stand-in of the controld in bin, which keeps what it has in a directory, and waits
// for its ready line.
func StartStandin(ctx context.Context, bin, stateDir string, stderr io.Writer) (*Standin, error) {
	child, values, err := startChild(ctx, "stand-in", bin, stderr, "github-standin", "--addr", "127.0.0.1:0", "--state-dir", stateDir)
	if err != nil {
		return nil, err
	}
	return &Standin{GitHub: NewGitHub(values["github"]), Addr: values["github"], child: child}, nil
}

// Stop ends it with SIGTERM.
func (s *Standin) Stop() error { return s.child.stop() }
