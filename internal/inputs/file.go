package inputs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/config/strictyaml"
)

// credentialsVariable is where systemd tells a unit the directory with its copies of credentials (systemd.exec(5)).
const credentialsVariable = "CREDENTIALS_DIRECTORY"

// read returns the content of a small file that is not empty. what says what it should be. It returns nil after it has
// reported a problem, and if the path itself is wrong.
func read(at strictyaml.Place, path, what string, most int64) []byte {
	if !there(at, path) {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		at.Errorf("%s", Problem(path, err))
		return nil
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		at.Errorf("%s", Problem(path, err))
	case len(data) == 0:
		at.Errorf("%s is empty; write %s into it", path, what)
	case int64(len(data)) > most:
		at.Errorf("%s is too large for %s: at most %d bytes are read", path, what, most)
	default:
		return data
	}
	return nil
}

// there reports whether a file can be opened, or what is wrong with it.
func there(at strictyaml.Place, path string) bool {
	if !at.Fine() || path == "" {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		at.Errorf("%s", Problem(path, err))
		return false
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		at.Errorf("%s is a directory; write the path of a file in it", path)
		return false
	}
	return true
}

// Problem says why a file cannot be read or written, and what to do about it.
func Problem(path string, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing(path)
	case errors.Is(err, fs.ErrPermission):
		return forbidden(path)
	}
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	return fmt.Sprintf("%s cannot be read: %v", path, err)
}

func missing(path string) string {
	if source := config.CredentialOf(path, os.Getenv(credentialsVariable)); source != "" {
		return fmt.Sprintf("%s was not there when systemd started the unit; write it and start the unit again", source)
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("%s does not exist, nor does the directory %s; make them, or write another path", path, dir)
	}
	return fmt.Sprintf("%s does not exist; make it, or write another path", path)
}

// forbidden names the file, or the directory above it that keeps us out, with its owner and its mode.
func forbidden(path string) string {
	what, at := "", path
	info, err := os.Stat(path)
	for errors.Is(err, fs.ErrPermission) && at != "/" {
		at = filepath.Dir(at)
		what = "its directory "
		info, err = os.Stat(at)
	}
	if err != nil {
		return fmt.Sprintf("%s: permission denied", path)
	}
	if what != "" {
		what += at + " "
	}
	return fmt.Sprintf("%s: permission denied for user %s: %sis owned by %s and has mode %04o; change its owner or mode, or put a secret into %s",
		path, userName(os.Geteuid()), what, owner(info), info.Mode().Perm(), config.CredentialsDir)
}

// owner is USER:GROUP of a file.
func owner(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "an unknown user"
	}
	group := strconv.Itoa(int(stat.Gid))
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	return userName(int(stat.Uid)) + ":" + group
}

func userName(id int) string {
	text := strconv.Itoa(id)
	if u, err := user.LookupId(text); err == nil {
		return u.Username
	}
	return text
}
