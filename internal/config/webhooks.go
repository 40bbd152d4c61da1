package config

import "github.com/remuda-ci/remuda/internal/config/strictyaml"

// Webhooks is what GitHub's deliveries are signed with. It has one of SecretFile and SecretEnv.
type Webhooks struct {
	// SecretFile holds a secret in each line. All of them are valid, so that one may be
	// replaced by the next. It is read at each delivery.
	SecretFile string `yaml:"secret_file"`
	// SecretEnv names the environment variable that holds the same.
	SecretEnv string `yaml:"secret_env"`
}

func (w Webhooks) validate(at strictyaml.Place) {
	switch {
	case w.SecretFile == "" && w.SecretEnv == "":
		at.Errorf("has no secret; write secret_file with a path or secret_env with the name of a variable")
	case w.SecretFile != "" && w.SecretEnv != "":
		at.At("secret_env").Errorf("is there beside secret_file; remove one of them")
	case w.SecretFile != "":
		file(at.At("secret_file"), w.SecretFile)
	case !variableName.MatchString(w.SecretEnv):
		// The value is not repeated: it may be the secret itself.
		at.At("secret_env").Errorf("is not the name of an environment variable; write a name such as WEBHOOK_SECRET")
	}
}
