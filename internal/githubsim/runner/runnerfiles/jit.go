package runnerfiles

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// EncodeJIT makes the configuration of a just-in-time runner as generate-jitconfig gives it: base64 of a JSON object of files, each
// in base64 (actions/runner 2.336, src/Runner.Listener/Runner.cs:234-256). Every value in its .runner is a text and the names begin
// with a capital. Nothing in it says that the runner must not update itself: GitHub's call has no field for that.
func EncodeJIT(s Settings, secret string) (string, error) {
	s.Ephemeral, s.DisableUpdate, s.UseV2Flow, s.UseRunnerAdminFlow = true, false, true, false
	files, err := Files(s, secret)
	if err != nil {
		return "", err
	}
	if files[Runner], err = asTexts(files[Runner]); err != nil {
		return "", err
	}
	raw, err := json.Marshal(files) // a []byte is base64 in JSON
	if err != nil {
		return "", fmt.Errorf("encode JIT configuration: %w", err)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}

// asTexts turns a settings file of config.sh into one of GitHub's.
func asTexts(settings []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(settings, bom)))
	d.UseNumber()
	values, texts := map[string]any{}, map[string]any{}
	if err := d.Decode(&values); err != nil {
		return nil, fmt.Errorf("encode JIT configuration: %w", err)
	}
	for name, v := range values {
		switch text := v.(type) {
		case bool:
			v = map[bool]string{true: "True", false: "False"}[text]
		case json.Number:
			v = text.String()
		}
		texts[strings.ToUpper(name[:1])+name[1:]] = v
	}
	return json.Marshal(texts)
}

// UnmarshalJSON reads what config.sh wrote, and what GitHub put into a JIT configuration, in which every value is a text.
func (s *Settings) UnmarshalJSON(text []byte) error {
	var values map[string]any
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	for name, v := range values {
		if word, ok := v.(string); ok && (json.Valid([]byte(word)) || word == "True" || word == "False") && !isName(name) {
			values[name] = json.RawMessage(strings.ToLower(word))
		}
	}
	plain, err := json.Marshal(values)
	if err != nil {
		return err
	}
	type settings Settings // without this method
	return json.Unmarshal(plain, (*settings)(s))
}

// isName reports whether a setting is a text by its nature, which may look like a number.
func isName(setting string) bool {
	return strings.HasSuffix(strings.ToLower(setting), "name") || strings.HasSuffix(strings.ToLower(setting), "folder")
}
