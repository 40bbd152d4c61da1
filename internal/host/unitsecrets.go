package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/remuda-ci/remuda/internal/logkey"
)

// writeSecrets writes secrets to a file that systemd reads for the unit and that only root can read.
func (l *unitProcesses) writeSecrets(t task, secrets []string) (string, error) {
	var text strings.Builder
	for _, s := range secrets {
		name, value, _ := strings.Cut(s, "=")
		if strings.ContainsAny(value, "\n\r\x00") {
			return "", fmt.Errorf("write secret %s: its value has a line break", name)
		}
		fmt.Fprintf(&text, "%s=\"%s\"\n", name, escaper.Replace(value))
	}
	path := filepath.Join(l.o.Secrets, t.name+".env")
	if err := writeFile(path, []byte(text.String())); err != nil {
		return "", fmt.Errorf("write secrets: %w", err)
	}
	return path, nil
}

// escaper is for double quotes in environment files (systemd.exec(5)).
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`)

// removeSecrets removes the files of secrets that a killed agent has left.
func (l *unitProcesses) removeSecrets() {
	left, err := filepath.Glob(filepath.Join(l.o.Secrets, "*.env"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		l.h.log.Error("cannot remove old secrets", logkey.Error, err)
	}
}
