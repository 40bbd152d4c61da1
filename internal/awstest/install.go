package awstest

import (
	"path/filepath"
	"sync"

	"github.com/remuda-ci/remuda/internal/awstest/pinned"
)

// pins is below the root of the module. It has what is the project's own: how moto is started, and its machine images.
const pins = "internal/awstest/emulators"

var emulators = pinned.Tools{
	Script: "scripts/emulators",
	Files:  []string{pins + "/pom.xml", pins + "/requirements.txt", pins + "/amis.json", pins + "/motoserver.py"},
}

// installation is where the emulators and their files are.
type installation struct {
	// emulators is the directory that the installer made.
	emulators string
	// pins is that of the project's own files.
	pins string
}

// installed installs the emulators where they are missing: the first test binary does it and all others wait.
var installed = sync.OnceValues(func() (installation, error) {
	i, err := emulators.Install()
	return installation{emulators: i.Dir, pins: filepath.Join(i.Root, pins)}, err
})
