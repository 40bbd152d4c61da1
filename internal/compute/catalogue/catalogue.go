package catalogue

import (
	"runtime"
	"strings"
)

// The architectures, as EC2 spells them.
const (
	ArchX86 = "x86_64"
	ArchArm = "arm64"
)

// Type is one instance type.
type Type struct {
	Name      string // such as c6i.large
	CPU       int    // vCPU
	MemoryMiB int
	Arch      string // ArchX86 or ArchArm
}

// families is the catalogue: every type of a family has the family's memory for each of its vCPU. The numbers
// are those of DescribeInstanceTypes (VCpuInfo.DefaultVCpus, MemoryInfo.SizeInMiB, ProcessorInfo), as
// published in https://docs.aws.amazon.com/ec2/latest/instancetypes/ and checked in August 2026 against the
// table that kubernetes/autoscaler generates from that call.
var families = []struct {
	names     string
	memoryMiB int // per vCPU
	arch      string
	sizes     []size
}{
	{"c5", 2048, ArchX86, sizesTo4x}, // there is no c5.8xlarge
	{"c5a c6a c6i c7a c7i c8a c8i", 2048, ArchX86, sizesTo8x},
	{"c6g c7g c8g", 2048, ArchArm, sizesTo8x},
	{"m5 m5a m5n m6a m6i m7a m7i m8a m8i", 4096, ArchX86, sizesTo8x},
	{"m6g m7g m8g", 4096, ArchArm, sizesTo8x},
	{"r5 r5a r5n r6a r6i r7a r7i r8a r8i", 8192, ArchX86, sizesTo8x},
	{"r6g r7g r8g", 8192, ArchArm, sizesTo8x},
}

type size struct {
	name string
	cpu  int
}

var (
	sizesTo8x = []size{{"large", 2}, {"xlarge", 4}, {"2xlarge", 8}, {"4xlarge", 16}, {"8xlarge", 32}}
	sizesTo4x = sizesTo8x[:4]
)

// All returns every type, family by family and the smallest of each first.
func All() []Type {
	var all []Type
	for _, f := range families {
		for name := range strings.FieldsSeq(f.names) {
			for _, s := range f.sizes {
				all = append(all, Type{Name: name + "." + s.name, CPU: s.cpu, MemoryMiB: s.cpu * f.memoryMiB, Arch: f.arch})
			}
		}
	}
	return all
}

// LocalArch is the architecture of this machine, in EC2's spelling.
func LocalArch() string {
	if runtime.GOARCH == "arm64" {
		return ArchArm
	}
	return ArchX86
}
