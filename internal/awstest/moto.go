package awstest

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// Moto is the endpoint of a moto, for EC2, ECS, SQS, STS and IAM: that of the
// whole run in make test, this test binary's own otherwise. A client that was not made from Config must name its account: see Proxy.
func Moto(t testing.TB) string {
	t.Helper()
	endpoint, err := sharedMoto()
	if err != nil {
		t.Fatal(err)
	}
	return endpoint
}

var sharedMoto = sharedBy(moto)

// NewMoto is the endpoint of a moto of the test's own, which ends with it. It takes a second or two to start
// and 180 MB, so it is for tests that change what a moto has only one of.
func NewMoto(t testing.TB) string {
	t.Helper()
	endpoint, stop, err := moto.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return endpoint
}

var moto = emulator{
	name: "moto",
	port: anyPort,
	command: func(i installation, port int) *exec.Cmd {
		cmd := exec.Command(filepath.Join(i.emulators, "moto/bin/python"), filepath.Join(i.pins, "motoserver.py"),
			"-H", "127.0.0.1", "-p", strconv.Itoa(port))
		cmd.Dir = i.emulators // Python would also look for modules where the test is
		// Nothing else of the environment: MOTO_ACCOUNT_ID would be stronger than the header. The 600 images
		// that moto has by itself would take each account a third of a second and 4 MB.
		cmd.Env = []string{"MOTO_AMIS_PATH=" + filepath.Join(i.pins, "amis.json")}
		return cmd
	},
	ready: func(ctx context.Context, endpoint string) error {
		_, err := sts.New(sts.Options{
			Region: region, BaseEndpoint: &endpoint, Credentials: prober.credentials(), RetryMaxAttempts: 1,
		}).GetCallerIdentity(ctx, nil)
		return err
	},
}
