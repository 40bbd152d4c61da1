// Package notify sends agentd's state to systemd (sd_notify): that it is ready, its status
// line, and that it is alive. If systemd did not start agentd ($NOTIFY_SOCKET is not set)
// nothing is sent, which is not an error.
package notify

import (
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"

	"github.com/remuda-ci/remuda/internal/logkey"
)

// WatchdogLimit is the WatchdogSec= of agentd.service: without a message for that long, systemd kills and
// restarts agentd. It is more than twice the longest step of the agent (agent.LongestStep), so that an agent
// is killed only if it hangs, and not if it waits for a store or for EC2.
const WatchdogLimit = 90 * time.Second

// feedPause is the shortest time between messages to the watchdog. The agent may make
// hundreds of steps in a second.
const feedPause = 5 * time.Second

// Ready reports that agentd is ready.
func Ready() error { return say(daemon.SdNotifyReady) }

// Stopping reports that agentd is stopping.
func Stopping() error { return say(daemon.SdNotifyStopping) }

// Watchdog reports that agentd is alive.
func Watchdog() error { return say(daemon.SdNotifyWatchdog) }

// Status sets the status line of systemctl status. Line breaks in it become
// spaces: what follows one would be another message to systemd.
func Status(line string) error {
	return say("STATUS=" + strings.NewReplacer("\n", " ", "\r", " ", "\x00", " ").Replace(line))
}

func say(word string) error {
	if _, err := daemon.SdNotify(false, word); err != nil {
		name, _, _ := strings.Cut(word, "=")
		return fmt.Errorf("sd_notify %s: %w", name, err)
	}
	return nil
}

// Stepped returns a function that feeds the watchdog. It must be called after every step
// of the agent, and only then. at is the time of the step.
func Stepped(log hclog.Logger) func(at time.Time) {
	var fed time.Time
	mute := false
	return func(at time.Time) {
		// A clock that was set back must not starve the watchdog.
		if since := at.Sub(fed); !fed.IsZero() && since >= 0 && since < feedPause {
			return
		}
		fed = at
		err := Watchdog()
		if err != nil && !mute {
			log.Warn("cannot feed the watchdog", logkey.Error, err)
		}
		mute = err != nil
	}
}
