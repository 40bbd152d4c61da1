// Package packer_test holds what goes into an image against what reads it there.
package packer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// journal is what the CloudWatch agent of an image reads.
type journal struct {
	Logs struct {
		Collected struct {
			Journald struct {
				List []struct {
					Group    string              `json:"log_group_name"`
					Stream   string              `json:"log_stream_name"`
					Units    []string            `json:"units"`
					Matches  []map[string]string `json:"matches"`
					Priority string              `json:"priority"`
				} `json:"collect_list"`
			} `json:"journald"`
		} `json:"logs_collected"`
	} `json:"logs"`
}

func configuration(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("scripts/files/cloudwatch-agent.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTheAgentTakesIt: the configuration is valid by the schema of the agent, and others are not.
func TestTheAgentTakesIt(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("testdata/cloudwatch-agent-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	text := configuration(t)
	for changed, valid := range map[string]bool{
		text: true,
		strings.Replace(text, `"units"`, `"unit"`, 1):                              false,
		strings.Replace(text, `"info"`, `"loud"`, 1):                               false,
		strings.Replace(text, `"journald"`, `"journal"`, 1):                        false,
		strings.Replace(text, `"log_group_name": "/remuda/remuda/hosts",`, ``, 1):  false,
		strings.Replace(text, `"_TRANSPORT": "kernel"`, `"_TRANSPORT": 1`, 1):      false,
		strings.Replace(text, `"priority": "err"`, `"start_at": "beginning"`, 1):   false,
		strings.Replace(text, `["agentd.service", `, `["agentd.service", 1, `, 1):  false,
		strings.Replace(text, `"{instance_id}/{ip_address}"`, `""`, 1):             false,
		strings.Replace(text, `"agent": {"logfile": ""}`, `"agent": "logfile"`, 1): false,
	} {
		content, err := jsonschema.UnmarshalJSON(strings.NewReader(changed))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(content); (err == nil) != valid {
			t.Errorf("%s\nis valid: %t (%v)", changed, !valid, err)
		}
	}
}

// TestWhatIsSent: what agentd, cloud-init and the kernel say, and nothing of jobs. The names of streams are those that the policy of
// hosts allows.
func TestWhatIsSent(t *testing.T) {
	var got journal
	if err := json.Unmarshal([]byte(configuration(t)), &got); err != nil {
		t.Fatal(err)
	}
	var units []string
	for _, entry := range got.Logs.Collected.Journald.List {
		if entry.Group != "/remuda/remuda/hosts" || entry.Stream != "{instance_id}/{ip_address}" {
			t.Errorf("a stream that no host may write to: %+v", entry)
		}
		// Without both the whole journal would be sent.
		kernel := []map[string]string{{"_TRANSPORT": "kernel"}}
		if len(entry.Units) == 0 && !cmp.Equal(kernel, entry.Matches) {
			t.Errorf("what is sent is not the kernel's: %+v", entry)
		}
		units = append(units, entry.Units...)
	}
	files, err := filepath.Glob("../systemd/*.service")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"cloud-init-local.service", "cloud-init-main.service", "cloud-init-network.service", "cloud-init.service", "cloud-config.service", "cloud-final.service",
	}
	for _, file := range files {
		if name := filepath.Base(file); name != "controld.service" {
			want = append(want, name)
		}
	}
	slices.Sort(units)
	slices.Sort(want)
	if diff := cmp.Diff(want, units); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
}
