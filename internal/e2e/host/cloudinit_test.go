//go:build testhost

package host_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"go.yaml.in/yaml/v3"
)

// cloudConfig is what of user data is for cloud-init.
type cloudConfig struct {
	WriteFiles []struct{ Path, Content, Permissions, Encoding string } `yaml:"write_files"`
}

// cloudInit writes the files that an instance's user data asks for, as
// cloud-init does before agentd starts.
func cloudInit(ctx context.Context, t testing.TB, a *account, id string, s *system) error {
	out, err := a.ec2.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{
		InstanceId: &id, Attribute: types.InstanceAttributeNameUserData,
	})
	if err != nil {
		return err
	}
	if sdk.ToString(out.UserData.Value) == "" { // no launch template
		s.write(t, "etc/remuda/host.json", fmt.Sprintf("{%q:%q}\n", "region", region), 0o644)
		return nil
	}
	config, err := readUserData(*out.UserData.Value)
	if err != nil {
		return fmt.Errorf("user data of %s: %w", id, err)
	}
	for _, f := range config.WriteFiles {
		mode, err := strconv.ParseUint(f.Permissions, 8, 32)
		if err != nil || f.Encoding != "" {
			return fmt.Errorf("user data of %s: file %s with permissions %q and encoding %q", id, f.Path, f.Permissions, f.Encoding)
		}
		s.write(t, f.Path, f.Content, os.FileMode(mode))
	}
	return nil
}

func readUserData(text string) (c cloudConfig, err error) {
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return c, err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return c, err
	}
	plain, err := io.ReadAll(unpacked)
	if err != nil {
		return c, err
	}
	if !strings.HasPrefix(string(plain), "#cloud-config\n") {
		return c, fmt.Errorf("not a cloud-config: %.40q", plain)
	}
	return c, yaml.Unmarshal(plain, &c)
}
