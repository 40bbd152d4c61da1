// Package notify is what agentd says to systemd, which started it: that it is
// ready, its status line, and that it is alive. Where it was started by somebody
// else ($NOTIFY_SOCKET is not set) nothing is said, and that is no error.
package notify

import (
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"
)

// WatchdogLimit is the WatchdogSec= of agentd.service: after so long without a
// word systemd kills agentd and starts it anew. It is more than twice the
// longest step of the agent (agent.LongestStep), so only an agent that stands
// still is killed, and none that waits for a store or for EC2.
const WatchdogLimit = 90 * time.Second

// feedPause is between words to the watchdog: the agent may make hundreds of
// steps in a second, and each word is a message to systemd.
const feedPause = 5 * time.Second

// Ready says that agentd works.
func Ready() error { return say(daemon.SdNotifyReady) }

// Stopping says that agentd ends.
func Stopping() error { return say(daemon.SdNotifyStopping) }

// Watchdog says that agentd is alive.
func Watchdog() error { return say(daemon.SdNotifyWatchdog) }

// Status sets the status line of systemctl status. Line breaks in it become
// spaces: what follows one would be another word to systemd.
func Status(line string) error {
	return say("STATUS=" + strings.NewReplacer("\n", " ", "\r", " ", "\x00", " ").Replace(line))
}

func say(word string) error {
	if _, err := daemon.SdNotify(false, word); err != nil {
		name, _, _ := strings.Cut(word, "=")
		return fmt.Errorf("tell systemd %s: %w", name, err)
	}
	return nil
}

// Stepped returns what is to be called after every step of the agent, and by
// nobody else: it feeds the watchdog with them. at is the time of the step.
func Stepped(log hclog.Logger) func(at time.Time) {
	var fed time.Time
	mute := false
	return func(at time.Time) {
		// A clock that went back must not starve it.
		if since := at.Sub(fed); !fed.IsZero() && since >= 0 && since < feedPause {
			return
		}
		fed = at
		err := Watchdog()
		if err != nil && !mute {
			log.Warn("cannot feed the watchdog", "error", err)
		}
		mute = err != nil
	}
}
