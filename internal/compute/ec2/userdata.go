package ec2

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// The files that user data puts on a host, by cloud-init, before the agent
// starts: the image's agentd unit is ordered after cloud-init.service.
const (
	// HostFile says where the host belongs: JSON with region, prefix, pool, and
	// what the pool says for the agent.
	HostFile = "/etc/remuda/host.json"
	// PreRunnerFile is the pool's script. There is none if the pool has none.
	PreRunnerFile = "/etc/remuda/pre-runner"
	// PostReleaseFile is the same for the script after each run.
	PostReleaseFile = "/etc/remuda/post-release"
)

// maxUserData is EC2's limit in bytes, before base64.
const maxUserData = 16 * 1024

// host is the content of HostFile.
type host struct {
	Region           string `json:"region"`
	Prefix           string `json:"prefix"`
	Pool             string `json:"pool"`
	PreRunner        string `json:"pre_runner,omitempty"`   // the path
	PostRelease      string `json:"post_release,omitempty"` // the path
	Privileged       bool   `json:"privileged,omitempty"`
	JobsReadMetadata bool   `json:"jobs_read_metadata,omitempty"`
}

// cloudConfig is the configuration for cloud-init. Its format is YAML, and JSON is YAML.
type cloudConfig struct {
	WriteFiles []writtenFile `json:"write_files"`
}

type writtenFile struct {
	Path        string `json:"path"`
	Permissions string `json:"permissions"`
	Encoding    string `json:"encoding,omitempty"`
	Content     string `json:"content"`
}

// userData is a pool's, compressed, which cloud-init undoes by itself, and in
// base64. Nothing in it is secret: a job could read it.
func (o Options) userData(pool string) (string, error) {
	p := o.Pools[pool]
	h := host{Region: o.Region, Prefix: o.Prefix, Pool: pool, Privileged: p.Privileged, JobsReadMetadata: p.JobsReadMetadata}
	var files []writtenFile
	if len(p.PreRunner) > 0 {
		h.PreRunner = PreRunnerFile
		files = append(files, scriptFile(PreRunnerFile, p.PreRunner))
	}
	if len(p.PostRelease) > 0 {
		h.PostRelease = PostReleaseFile
		files = append(files, scriptFile(PostReleaseFile, p.PostRelease))
	}
	settings, err := json.Marshal(h)
	if err != nil {
		return "", fmt.Errorf("encode the host's settings: %w", err)
	}
	files = append(files, writtenFile{Path: HostFile, Permissions: "0644", Content: string(settings) + "\n"})
	var text bytes.Buffer
	text.WriteString("#cloud-config\n")
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(cloudConfig{files}); err != nil {
		return "", fmt.Errorf("encode user data: %w", err)
	}
	packed, err := pack(text.Bytes())
	if err != nil {
		return "", err
	}
	if len(packed) > maxUserData {
		return "", fmt.Errorf("user data has %d bytes when compressed, and EC2 takes %d: shorten the pre-runner or post-release script, "+
			"or let it fetch what it needs", len(packed), maxUserData)
	}
	return base64.StdEncoding.EncodeToString(packed), nil
}

func scriptFile(path string, script []byte) writtenFile {
	file := writtenFile{Path: path, Permissions: "0755", Content: string(script)}
	if !plain(script) {
		file.Encoding, file.Content = "b64", base64.StdEncoding.EncodeToString(script)
	}
	return file
}

// plain: readers of YAML refuse what cannot be printed, even where JSON has it.
func plain(script []byte) bool {
	odd := func(r rune) bool { return r != '\n' && r != '\t' && r != '\r' && !unicode.IsPrint(r) }
	return utf8.Valid(script) && bytes.IndexFunc(script, odd) < 0
}

func pack(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress user data: %w", err)
	}
	return packed.Bytes(), nil
}
