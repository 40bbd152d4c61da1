package telemetry

import (
	"io"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/mattn/go-isatty"
)

// The formats of a log.
const (
	LogText = "text"
	LogJSON = "json"
)

// NewLogger returns the root logger of a program. Levels are hclog's; an
// unknown one means info. Text has colours on a terminal only.
func NewLogger(program, level, format string, out io.Writer) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name:       program,
		Level:      hclog.LevelFromString(level),
		JSONFormat: format == LogJSON,
		Output:     out,
		Color:      color(format, out),
		TimeFormat: "2006-01-02T15:04:05.000Z",
		TimeFn:     func() time.Time { return time.Now().UTC() },
	})
}

// color decides on colors instead of hclog, which also colors JSON and every output that is not a file.
func color(format string, out io.Writer) hclog.ColorOption {
	f, ok := out.(*os.File)
	if ok && format != LogJSON && isatty.IsTerminal(f.Fd()) {
		return hclog.ForceColor
	}
	return hclog.ColorOff
}
