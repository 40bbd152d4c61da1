// Package jitconfig changes the configuration of a just-in-time runner that GitHub makes.
package jitconfig

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	// settingsFile holds the settings of the runner among the files of a configuration.
	settingsFile = ".runner"
	// disableUpdate is the setting that keeps a runner from updating itself. GitHub's call that makes the configuration has no
	// parameter for it, and without it a runner that is older than the newest one updates itself instead of taking its job
	// (actions/runner 2.336, src/Runner.Listener/BrokerMessageListener.cs:296-302 and Runner.cs:645-687).
	disableUpdate = "DisableUpdate"
)

// DisableUpdate returns the configuration with self-update turned off, and everything else as it was. A configuration is base64 of a JSON
// object of files, each in base64; .runner is a JSON object (src/Runner.Listener/Runner.cs:234-256). No error quotes any of it, since it
// has a secret in it.
func DisableUpdate(config string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(config)
	if err != nil {
		return "", errors.New("the just-in-time configuration is not base64")
	}
	var files map[string][]byte
	if json.Unmarshal(raw, &files) != nil || files[settingsFile] == nil {
		return "", fmt.Errorf("the just-in-time configuration is not an object of files with %s", settingsFile)
	}
	var settings map[string]json.RawMessage
	if json.Unmarshal(bytes.TrimPrefix(files[settingsFile], []byte("\xef\xbb\xbf")), &settings) != nil || settings == nil {
		return "", fmt.Errorf("the file %s of the just-in-time configuration is not an object of settings", settingsFile)
	}
	for name := range settings { // the runner reads names without regard to case
		if strings.EqualFold(name, disableUpdate) {
			delete(settings, name)
		}
	}
	settings[disableUpdate] = json.RawMessage(`"True"`) // a text, as GitHub writes all values
	if files[settingsFile], err = json.Marshal(settings); err != nil {
		return "", fmt.Errorf("encode the settings of a just-in-time configuration: %w", err)
	}
	if raw, err = json.Marshal(files); err != nil {
		return "", fmt.Errorf("encode a just-in-time configuration: %w", err)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}
