package runner

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// commandLog passes on the output of an action line by line, with its commands carried out as far as they are about the log
// (https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands): what it masks is not shown.
type commandLog struct {
	to io.Writer

	mu      sync.Mutex
	partial []byte
	masked  []string
}

// unescape turns the message of a command into its text.
var unescape = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%25", "%")

func (l *commandLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, p...)
	for {
		line, rest, whole := bytes.Cut(l.partial, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		if err := l.line(string(line)); err != nil {
			return 0, err
		}
		l.partial = rest
	}
}

// flush passes on a last line without an end.
func (l *commandLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		_ = l.line(string(l.partial)) // the log takes everything
		l.partial = nil
	}
}

func (l *commandLog) line(text string) error {
	if command, message, found := strings.Cut(strings.TrimPrefix(text, "::"), "::"); found && strings.HasPrefix(text, "::") {
		if command == "add-mask" {
			l.masked = append(l.masked, unescape.Replace(message))
			return nil
		}
		text = "##[" + command + "]" + unescape.Replace(message)
	}
	for _, secret := range l.masked {
		text = strings.ReplaceAll(text, secret, "***")
	}
	_, err := io.WriteString(l.to, text+"\n")
	return err
}
