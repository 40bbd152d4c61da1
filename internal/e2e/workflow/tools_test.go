package workflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// GitHub's machines have curl and jq; a machine that runs the tests may have
// neither. These are as much of them as the example uses. They are this test's
// own program under another name.
var ownTools = map[string]func(args []string, in io.Reader, out io.Writer) error{"curl": curl, "jq": jq}

func toolOf(program string) func(args []string, in io.Reader, out io.Writer) error {
	return ownTools[filepath.Base(program)]
}

func linkTools(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for name := range ownTools {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// curl knows -fsS, -L, -o FILE, -H @- and a URL.
func curl(args []string, in io.Reader, out io.Writer) error {
	var url, file string
	header := http.Header{}
	for i := 0; i < len(args); i++ {
		value := func() string { i++; return args[min(i, len(args)-1)] }
		switch arg := args[i]; {
		case slices.Contains([]string{"-fsS", "-fsSL"}, arg):
		case arg == "-o":
			file = value()
		case arg == "-H" && value() == "@-":
			text, err := io.ReadAll(in)
			if err != nil {
				return err
			}
			name, content, _ := strings.Cut(string(text), ":")
			header.Set(name, strings.TrimSpace(content))
		case !strings.HasPrefix(arg, "-") && url == "":
			url = arg
		default:
			return fmt.Errorf("curl: this one does not know %q", arg)
		}
	}
	if file == "" {
		return get(url, header, out)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(get(url, header, f), f.Close())
}

func get(url string, header http.Header, out io.Writer) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		return fmt.Errorf("curl: %s", resp.Status)
	}
	_, err = io.Copy(out, resp.Body)
	return err
}

// jq knows -er .NAME of a text.
func jq(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 || args[0] != "-er" || !strings.HasPrefix(args[1], ".") {
		return fmt.Errorf("jq: this one does not know %q", args)
	}
	var object map[string]any
	if err := json.NewDecoder(in).Decode(&object); err != nil {
		return err
	}
	text, isText := object[args[1][1:]].(string)
	if !isText {
		return fmt.Errorf("jq: %s is no text", args[1])
	}
	_, err := fmt.Fprintln(out, text)
	return err
}
