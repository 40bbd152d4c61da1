package ec2_test

import (
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/remuda-ci/remuda/internal/compute/ec2"
	"github.com/remuda-ci/remuda/internal/lifecycle"
	"github.com/remuda-ci/remuda/internal/testrun/racepass"
)

// required are the requirements of an order in a pool.
func required(t *testing.T, p ec2.Pool, o lifecycle.LaunchOrder) *types.InstanceRequirementsRequest {
	t.Helper()
	p.Images, p.Subnets = map[string]string{"x86_64": "ami-1"}, []string{"subnet-a1"}
	api := &cloud{}
	c, err := ec2.New(api, ec2.Options{Prefix: prefix, Region: region, Pools: map[string]ec2.Pool{"default": p}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Launch(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	api.legal(t)
	return api.launches[0].LaunchTemplateConfigs[0].Overrides[0].InstanceRequirements
}

// A pool with a baseline is launched on no CPU that EC2 knows to be slower.
func TestBaselineOfTheCPU(t *testing.T) {
	racepass.OneGoroutine(t)
	if got := required(t, ec2.Pool{}, plain(1, 1)).BaselinePerformanceFactors; got != nil {
		t.Errorf("without a baseline: %+v", got)
	}
	got := required(t, ec2.Pool{CPUBaseline: "c6i"}, plain(1, 1)).BaselinePerformanceFactors
	if got == nil || got.Cpu == nil || len(got.Cpu.References) != 1 || sdk.ToString(got.Cpu.References[0].InstanceFamily) != "c6i" {
		t.Errorf("with c6i: %+v", got)
	}
}

// Machines with accelerators are dear: only a pool that names a family of them gets one, whatever a request names.
func TestAcceleratorsOnlyWherePoolNamesThem(t *testing.T) {
	racepass.OneGoroutine(t)
	for _, test := range []struct {
		name          string
		pool, request []string
		may           bool
	}{
		{"a pool without types", nil, nil, false},
		{"a request alone", nil, []string{"g5.*"}, false},
		{"any type", []string{"*"}, []string{"g5.*"}, false},
		{"a size", []string{"*.xlarge"}, nil, false},
		{"ordinary families", []string{"c*", "m7g.*", "r6i.large"}, nil, false},
		{"a family", []string{"g5.*"}, nil, true},
		{"a family among others", []string{"c*", "p4*"}, []string{"p4d.*"}, true},
		{"all with GPUs of a kind", []string{"g*"}, []string{"*"}, true},
		{"Inferentia", []string{"inf2.xlarge"}, nil, true},
		{"Trainium", []string{"trn1.*"}, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := plain(1, 1)
			o.PoolTypes, o.InstanceTypes = test.pool, test.request
			got := required(t, ec2.Pool{}, o).AcceleratorCount
			if may := got == nil; may != test.may || !may && sdk.ToInt32(got.Max) != 0 {
				t.Errorf("accelerators: %+v, want them allowed %v", got, test.may)
			}
		})
	}
}

// What a host may have at most is what suits its class, or what the class says.
func TestBoundsOfAClass(t *testing.T) {
	racepass.OneGoroutine(t)
	for _, test := range []struct{ maxCPU, maxMemoryMiB, cpu, memoryMiB int }{
		{0, 0, 4, 16384}, {2, 0, 2, 16384}, {0, 4096, 4, 4096}, {16, 131072, 16, 131072},
	} {
		o := plain(1, 1)
		o.MaxCPU, o.MaxMemoryMiB = test.maxCPU, test.maxMemoryMiB
		r := required(t, ec2.Pool{}, o)
		equal(t, "bounds", []int32{2, int32(test.cpu), 4096, int32(test.memoryMiB)}, []int32{*r.VCpuCount.Min, *r.VCpuCount.Max, *r.MemoryMiB.Min, *r.MemoryMiB.Max})
	}
	_, c := open(t, unpaced)
	wide := ec2.Class{CPU: 2, MemoryMiB: 4096, MaxCPU: 16, MaxMemoryMiB: 131072}
	if !c.Sells(wide, []string{"r6i.4xlarge"}) {
		t.Error("a type within the bounds of a class is said not to be sold")
	}
}

// The root volume is provisioned as the pool says, and a change of that is a new version of the template.
func TestVolumesAreProvisioned(t *testing.T) {
	racepass.CoveredBy(t, "TestConformance")
	w := newWorld(t)
	ensure(t, w.open(t, w.options()))
	fast := pool(w.options(), func(p *ec2.Pool) { p.IOPS, p.ThroughputMiB = 6000, 500 })
	for _, changes := range []bool{true, false} {
		if made := ensure(t, w.open(t, fast)); len(made) > 0 != changes {
			t.Errorf("changes %v, want some: %v", made, changes)
		}
	}
	versions, _ := w.versions(t)
	newest := versions[0]
	for _, v := range versions {
		if *v.VersionNumber > *newest.VersionNumber {
			newest = v
		}
	}
	volume := newest.LaunchTemplateData.BlockDeviceMappings[0].Ebs
	if sdk.ToInt32(volume.Iops) != 6000 || sdk.ToInt32(volume.Throughput) != 500 || volume.VolumeType != types.VolumeTypeGp3 {
		t.Errorf("volume %+v", volume)
	}
}
