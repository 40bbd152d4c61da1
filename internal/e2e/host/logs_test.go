//go:build testhost

package host_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

const (
	// logGroup is not the one that the files of the image scripts have.
	logGroup = "/remuda/ci/hosts"
	// cloudWatchVersion is that of the stand-in's package.
	cloudWatchVersion = "1.300071.0b1720"
	cloudWatchUnit    = "amazon-cloudwatch-agent.service"
	cloudWatchHome    = "opt/aws/amazon-cloudwatch-agent"
	standInOfAgent    = "testdata/cloudwatch-agent"
)

// theAgentsKey is the fingerprint of the key that has signed the stand-in of the CloudWatch agent, which is served as AWS serves its package.
var theAgentsKey = sync.OnceValues(func() (string, error) {
	d, err := theDownloads()
	if err != nil {
		return "", err
	}
	tree := filepath.Join(setting.dir, "cloudwatch-agent")
	for _, dir := range []string{"DEBIAN", "etc/systemd/system", cloudWatchHome + "/bin", cloudWatchHome + "/logs", cloudWatchHome + "/var"} {
		if err := os.MkdirAll(filepath.Join(tree, dir), 0o755); err != nil {
			return "", err
		}
	}
	for from, to := range map[string]string{
		"control": "DEBIAN", cloudWatchUnit: "etc/systemd/system", "start-amazon-cloudwatch-agent": cloudWatchHome + "/bin",
	} {
		if _, err := command("cp", filepath.Join(standInOfAgent, from), filepath.Join(tree, to)); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(tree, cloudWatchHome, "bin/CWAGENT_VERSION"), []byte(cloudWatchVersion+"\n"), 0o644); err != nil {
		return "", err
	}
	keys, assets := filepath.Join(setting.dir, "keys"), filepath.Join(d.dir, "assets")
	if err := errors.Join(os.Mkdir(keys, 0o700), os.Mkdir(assets, 0o755)); err != nil {
		return "", err
	}
	gpg := func(args ...string) (string, error) {
		return command("gpg", append([]string{"--homedir", keys, "--batch", "--quiet", "--no-tty", "--passphrase", "", "--pinentry-mode", "loopback"}, args...)...)
	}
	_, err = gpg("--quick-generate-key", "Amazon CloudWatch Agent (stand-in)", "rsa2048", "sign", "never")
	if err != nil {
		return "", err
	}
	defer command("gpgconf", "--homedir", keys, "--kill", "all") // its agent
	for _, system := range []string{"debian", "ubuntu"} {
		at := filepath.Join(d.dir, system, "amd64", cloudWatchVersion, "amazon-cloudwatch-agent.deb")
		_, err := command("dpkg-deb", "--root-owner-group", "--build", tree, filepath.Join(setting.dir, "cloudwatch-agent.deb"))
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o755)); err != nil {
			return "", err
		}
		if _, err := command("cp", filepath.Join(setting.dir, "cloudwatch-agent.deb"), at); err != nil {
			return "", err
		}
		if _, err := gpg("--detach-sign", "--output", at+".sig", at); err != nil {
			return "", err
		}
	}
	if _, err := gpg("--armor", "--output", filepath.Join(assets, "amazon-cloudwatch-agent.gpg"), "--export"); err != nil {
		return "", err
	}
	list, err := gpg("--with-colons", "--fingerprint")
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^fpr:+([0-9A-F]{40}):`).FindStringSubmatch(list)
	if found == nil {
		return "", fmt.Errorf("no fingerprint in %s", list)
	}
	return found[1], nil
})

// withLogs are the variables of the step, and one that overrides them.
func withLogs(key string, more ...string) []string {
	d, _ := theDownloads()
	return append([]string{
		"REMUDA_HOST_LOGS=" + logGroup, "REMUDA_CLOUDWATCH_AGENT_VERSION=" + cloudWatchVersion, "REMUDA_CLOUDWATCH_AGENT_URL=" + d.url, "REMUDA_CLOUDWATCH_AGENT_KEY=" + key,
	}, more...)
}

// theLogsImage is the image with the step, made of the one without: the scripts may be run again.
var theLogsImage = sync.OnceValues(func() (provisioned, error) {
	key, err := theAgentsKey()
	w, err2 := theWorld()
	made, err3 := theImage()
	if err := errors.Join(err, err2, err3); err != nil {
		return provisioned{}, err
	}
	return provisionLayer(w, "logs", withLogs(key), made.layer, setting.root)
})

func logsImage(t testing.TB) []string {
	t.Helper()
	layers := image(t)
	made, err := theLogsImage()
	check(t, err)
	return append([]string{made.layer}, layers...)
}

// TestLogsOfAStranger: what AWS has not signed is not installed.
func TestLogsOfAStranger(t *testing.T) {
	t.Parallel()
	key, err := theAgentsKey()
	check(t, err)
	w, err := theWorld()
	check(t, err)
	d, err := theDownloads()
	check(t, err)
	good := filepath.Join(d.dir, "debian", "amd64", cloudWatchVersion)
	for _, name := range []string{"changed", "older"} { // another package with the signature, and the package under another version
		for _, system := range []string{"debian", "ubuntu"} {
			at := filepath.Join(d.dir, name, system, "amd64", map[string]string{"changed": cloudWatchVersion, "older": "1.300072.0b1766"}[name])
			check(t, os.MkdirAll(at, 0o755))
			run(t, "cp", filepath.Join(good, "amazon-cloudwatch-agent.deb"), filepath.Join(good, "amazon-cloudwatch-agent.deb.sig"), at)
			if name == "changed" {
				f, err := os.OpenFile(filepath.Join(at, "amazon-cloudwatch-agent.deb"), os.O_APPEND|os.O_WRONLY, 0)
				check(t, err)
				_, err = f.WriteString("more")
				check(t, errors.Join(err, f.Close()))
			}
		}
		run(t, "cp", "-r", filepath.Join(d.dir, "assets"), filepath.Join(d.dir, name))
	}
	for name, test := range map[string]struct {
		more []string
		says string
	}{
		"signed by another": {[]string{"REMUDA_CLOUDWATCH_AGENT_KEY="}, "is signed by " + key + ", not by 937616F3450B7D806CBD9725D58167303B789C72"},
		"changed":           {[]string{"REMUDA_CLOUDWATCH_AGENT_URL=" + d.url + "/changed"}, "no valid signature"},
		"of another version": {[]string{
			"REMUDA_CLOUDWATCH_AGENT_URL=" + d.url + "/older", "REMUDA_CLOUDWATCH_AGENT_VERSION=1.300072.0b1766",
		}, "is " + cloudWatchVersion + ", not 1.300072.0b1766"},
		"no log group": {[]string{"REMUDA_HOST_LOGS=/remuda/*"}, "is not the name of a log group"},
		"not there":    {[]string{"REMUDA_CLOUDWATCH_AGENT_VERSION=1.0"}, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t, image(t)...)
			out, err := provision(w, s, "70-logs.sh", withLogs(key, test.more...)...)
			if err == nil || !strings.Contains(out, test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
			if s.exists("etc/systemd/system/multi-user.target.wants/" + cloudWatchUnit) {
				t.Error("it starts with the host")
			}
		})
	}
}

// sent is what the stand-in of the agent has sent from a machine, by the unit or the transport that said it.
func sent(t testing.TB, m *machine) (messages map[string]string, size int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(m.root, cloudWatchHome, "logs", "sent.*"))
	check(t, err)
	if len(files) == 0 {
		t.Error("nothing was sent")
	}
	messages = map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		check(t, err)
		size += len(data)
		for line := range strings.Lines(string(data)) {
			var entry struct {
				Message   any    `json:"MESSAGE"`
				Unit      string `json:"_SYSTEMD_UNIT"`
				Transport string `json:"_TRANSPORT"`
			}
			if json.Unmarshal([]byte(line), &entry) != nil {
				continue // the last one of a machine that was switched off
			}
			from := entry.Unit
			if entry.Transport == "kernel" {
				from = entry.Transport
			}
			messages[from] += fmt.Sprintln(entry.Message)
		}
	}
	return messages, size
}

// imitatesTheAgent is a job that prints what must not be sent, says it as agentd too, and tries to end what sends.
const imitatesTheAgent = `
echo "the word is abracadabra"
logger -t agentd "abracadabra" || true
systemd-cat -t agentd echo abracadabra || true
systemctl stop amazon-cloudwatch-agent 2>/dev/null && echo "stopped the agent" || true
journalctl --quiet --unit agentd --lines 1 2>/dev/null | grep -q . && echo "read the lines" || true
`

// TestLogs: an image with the step sends what the host says from its start to its end, and nothing of jobs, through two runs and the clean-up
// between them.
func TestLogs(t *testing.T) {
	t.Parallel()
	layers := logsImage(t)
	s := newStageOf(t, layers, nil)
	host := s.provision("101", "default")
	host.copyFile(t, "../../../packer/scripts/check.sh", "opt/check.sh", 0o755)
	host.sh("REMUDA_HOST_LOGS=" + logGroup + " /opt/check.sh --booted")
	before := host.property(cloudWatchUnit, "InvocationID")
	s.begin("101", job{"imitate", imitatesTheAgent})
	if got := s.succeeds("101", "imitate"); strings.Contains(got, "stopped the agent") || strings.Contains(got, "read the lines") {
		t.Errorf("what a job could do:\n%s", got)
	}
	s.release("101")
	host.says("idle: clean, in the pool")
	s.provision("102", "default")
	s.release("102")
	if after := host.property(cloudWatchUnit, "InvocationID"); before == "" || after != before {
		t.Errorf("the agent was started again: %q, then %q", before, after)
	}
	_, booted := sent(t, host.machine)
	host.press()
	host.goesDown(powerOffWithin)
	messages, size := sent(t, host.machine)
	t.Logf("sent in all: %d bytes, %d of them before the end, of: %v", size, booted, keys(messages))
	for from, text := range messages {
		if strings.Contains(text, "abracadabra") {
			t.Errorf("%s has sent what a job said:\n%s", from, text)
		}
	}
	said := host.words("agentd")
	first, _, _ := strings.Cut(said, "\n")
	last := strings.TrimSpace(said[strings.LastIndex(strings.TrimSpace(said), "\n")+1:])
	if got := messages["agentd.service"]; first == "" || !strings.Contains(got, first) || !strings.Contains(got, last) {
		t.Errorf("agentd said from %q to %q; sent was:\n%s", first, last, got)
	}
	if _, err := os.Stat(filepath.Join(host.root, cloudWatchHome, "logs", "flushed")); err != nil {
		t.Errorf("the agent had no time to send the last lines: %v", err)
	}
}

func keys(m map[string]string) (all []string) {
	for key, text := range m {
		all = append(all, fmt.Sprintf("%s (%d lines)", key, strings.Count(text, "\n")))
	}
	return all
}

// TestLogsHoldNothingUp: a host works whose CloudWatch agent does not, and goes down.
func TestLogsHoldNothingUp(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{
		"it fails":        "#!/bin/sh\nexit 1\n",
		"it hangs":        "#!/bin/sh\ntrap '' TERM\nsleep 100000 & wait\nsleep 100000\n",
		"it is not there": "",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStageOf(t, logsImage(t), func(_ types.Instance, s *system) {
				at := cloudWatchHome + "/bin/start-amazon-cloudwatch-agent"
				if program != "" {
					s.write(t, at, program, 0o755)
				} else if err := os.Remove(filepath.Join(s.root, at)); !errors.Is(err, fs.ErrNotExist) {
					check(t, err)
				}
			})
			host := s.provision("101", "default")
			host.says("running: run 101 of " + repository)
			host.press()
			host.goesDown(powerOffWithin)
		})
	}
}
