package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remuda-ci/remuda/internal/config"
	"github.com/remuda-ci/remuda/internal/config/inventory"
)

// aws is a section that is fine, with something written before or instead of its
// ec2.
func aws(more string) string {
	if more != "" {
		more += ", "
	}
	if !strings.Contains(more, "ec2:") {
		more += "ec2: {images: {x86_64: ami-12345678}, subnets: [subnet-12345678], security_groups: [sg-12345678]}, "
	}
	return "aws: {" + more + "instance_profile: remuda-host}\n"
}

// cached is a file whose default pool has these caches.
func cached(caches string) string { return "pools: {default: {caches: [" + caches + "]}}" }

// withApp has a GitHub App.
const withApp = "github: {apps: [{app_id: 7, private_key_env: KEY}]}\n"

func TestRules(t *testing.T) {
	var pools, zones strings.Builder
	for i := range 101 {
		fmt.Fprintf(&pools, "  p%d: {}\n", i)
		fmt.Fprintf(&zones, "z%d,", i)
	}
	tests := []struct{ name, text, want string }{
		{"cache without a size", cached("{name: go, paths: [~/go]}"), `pools.default.caches[0].size_mib: is missing; write a number from 1 to 16777216`},
		{"cache without a path", cached("{name: go, size_mib: 1}"), `pools.default.caches[0]: paths has 0 directories, want 1 to 8`},
		{"cache of tools with a path", cached("{name: tools, holds: tools, paths: [~/tools], size_mib: 1}"), `pools.default.caches[0]: paths has 1 directories, and a cache that holds tools is in ~/hostedtoolcache: leave them out`},
		{"two caches of tools", cached("{name: a, holds: tools, size_mib: 1}, {name: b, holds: tools, size_mib: 1}"), `pools.default.caches: path "~/hostedtoolcache" is inside the path "~/hostedtoolcache"`},
		{"mirror without an App", cached("{name: git, holds: git, size_mib: 1}"), `pools.default.caches[0].holds: is git, and only a GitHub App can give a host a token that reads one repository: set github.apps`},
		{"mirror within the reach of jobs", withApp + aws("") + `pools: {default: {jobs_read_metadata: true, caches: [{name: git, holds: git, size_mib: 1}]}}`, `pools.default.caches[0].holds: is git, and with jobs_read_metadata a job could read the token of its host`},
		{"mirror of an owner", withApp + `pools: {default: {reuse: same-owner, caches: [{name: git, holds: git, size_mib: 1, scope: owner}]}}`, `pools.default.caches[0]: scope is owner, and a cache that holds git is the mirror of one repository: write repository`},
		{"mirror with a path", withApp + cached("{name: git, holds: git, paths: [~/x], size_mib: 1}"), `a cache that holds git is in ~/gitmirror: leave them out`},
		{"cache outside the home", cached("{name: go, paths: [/etc], size_mib: 1}"), `path "/etc" does not begin with ~/`},
		{"caches in each other", cached("{name: a, paths: [~/go], size_mib: 1}, {name: b, paths: [~/go/pkg], size_mib: 1}"), `pools.default.caches: path "~/go/pkg" is inside the path "~/go"`},
		{"cache of two names", cached("{name: a, paths: [~/x], size_mib: 1}, {name: a, paths: [~/y], size_mib: 1}"), `another one has the same name`},
		{"cache with a pattern that is none", cached("{name: go, paths: [~/go], size_mib: 1, from: [\"rel?\"]}"), `pools.default.caches[0].from[0]: has a character that is neither a star nor stands for itself`},
		{"cache of an owner without hosts for it", cached("{name: go, paths: [~/go], size_mib: 1, scope: owner}"), `pools.default.caches[0].scope: is owner, and no host of the pool serves two repositories`},
		{"cache of no host that is reused", "pools: {default: {reuse: none, caches: [{name: go, paths: [~/go], size_mib: 1}]}}", `pools.default.caches: means nothing with reuse: none`},
		{"cache that root could write to", "pools: {default: {privileged: true, caches: [{name: go, paths: [~/go], size_mib: 1}]}}", `pools.default.caches: is refused with privileged`},
		{"cache of docker without privileged", "pools: {default: {caches: [{name: images, holds: docker, size_mib: 1}]}}", `pools.default.caches: has one that holds docker, which only jobs of a privileged pool can use`},
		{"cache of docker and another", "pools: {default: {privileged: true, caches: [{name: images, holds: docker, size_mib: 1}, {name: go, paths: [~/go], size_mib: 1}]}}", `it is the only cache of its pool`},
		{"cache of docker with paths", "pools: {default: {privileged: true, caches: [{name: images, holds: docker, paths: [~/go], size_mib: 1}]}}", `a cache that holds docker has none`},
		{"cache of docker for one repository of many", "pools: {default: {privileged: true, reuse: same-owner, caches: [{name: images, holds: docker, size_mib: 1}]}}", `docker has one store for all runs of a host`},
		{"cache of the repository, which is not known", "github: {scope: organisation}\nwebhooks: {secret_env: S}\npools: {default: {reuse: same-owner, jobs: {labels: [s], maximum: 1, repositories: [\"a/*\"]}, caches: [{name: go, paths: [~/go], size_mib: 1}]}}",
			`pools.default.caches[0].scope: is repository, and at organization scope GitHub chooses the repository`},
		{"plaintext", "grpc: {addr: 0.0.0.0:7443}", `2:8: grpc.addr: is reached from other machines in plaintext; write a loopback address such as 127.0.0.1:7443, or add grpc.tls`},
		{"plaintext on all", "grpc: {addr: \":7443\"}", `grpc.addr: is reached from other machines in plaintext`},
		{"plaintext by name", "grpc: {addr: \"host:7443\"}", `grpc.addr: is reached from other machines in plaintext`},
		{"no port", "grpc: {addr: localhost}", `grpc.addr: is "localhost"; write host:port`},
		{"port", "http: {addr: \"localhost:65536\"}", `http.addr: is "localhost:65536"; write host:port`},
		{"same port", "http: {addr: 127.0.0.1:7443}", `http.addr: is that of grpc too`},
		{"half a certificate", "grpc: {tls: {cert_file: /c}}", `2:8: grpc.tls.key_file: is missing; write an absolute path`},
		{"relative certificate", "grpc: {tls: {cert_file: /c, key_file: k}}", `2:29: grpc.tls.key_file: is "k"; write an absolute path`},
		{"relative authority", "grpc: {tls: {cert_file: /c, key_file: /k, client_ca_file: x}}", `grpc.tls.client_ca_file: is "x"`},
		{"relative store", "store: {sqlite: {path: x.db}}", `store.sqlite.path: is "x.db"; write an absolute path`},
		{"no store", "store: {sqlite: {path: \"\"}}", `store.sqlite.path: is missing`},
		{"directory", "compute: {process: {directory: hosts}}", `compute.process.directory: is "hosts"`},
		{"runner", "compute: {process: {runner: runner}}", `compute.process.runner: is "runner"`},
		{"agentd", "compute: {process: {agentd: \"\"}}", `compute.process.agentd: is missing`},
		{"boot delay", "compute: {process: {boot_delay: -1s}}", `compute.process.boot_delay: is -1s; write a duration from 0s to 10m0s`},
		{"boot delay and creation", "compute: {process: {boot_delay: 5m}}\ntimeouts: {creation: 5m}", `compute.process.boot_delay: is 5m0s, not less than timeouts.creation (5m0s)`},
		{"no zones", "compute: {process: {zones: []}}", `compute.process.zones: is empty`},
		{"zone", "compute: {process: {zones: [a, \"B c\"]}}", `2:32: compute.process.zones[1]: is "B c"; write a zone`},
		{"zone twice", "compute: {process: {zones: [a, a]}}", `compute.process.zones[1]: is here twice`},
		{"zones", "compute: {process: {zones: [" + zones.String() + "]}}", `compute.process.zones: has 101 entries; write at most 100`},
		{"capacity", "compute: {process: {capacity: {\"c*\": -1}}}", `compute.process.capacity["c*"]: is -1; write a number from 0 to 100000`},
		{"spot capacity", "compute: {process: {spot_capacity: {\"C6\": 1}}}", `compute.process.spot_capacity.C6: is not a pattern of instance types`},
		{"variable", "compute: {process: {environment: {\"A=B\": c}}}", `compute.process.environment["A=B"]: is no name of an environment variable`},
		{"api", "github: {url: api.github.com}", `github.url: is not the base URL of an API`},
		{"api in plaintext", "github: {url: \"http://ghes.acme.com/api/v3\"}", `github.url: would send the token in plaintext`},
		{"two tokens", "github: {token_file: /t}", `github.token_env: is there beside token_file`},
		{"a token and an App", "github: { apps: [{app_id: 1, private_key_file: /k}]}", `1:25: github.apps: is there beside token_env; write one of them`},
		{"authority", "github: {ca_file: ca.crt}", `github.ca_file: is "ca.crt"; write an absolute path`},
		{"authority in plaintext", "github: {url: \"http://127.0.0.1:1\", ca_file: /ca}", `github.ca_file: means nothing with a url of http`},
		{"scope", "github: {scope: organization}", `github.scope: "organization" is not allowed; did you mean organisation?`},
		{"group of a repository", "github: {runner_group: builders}", `github.runner_group: means nothing at repository scope`},
		{"group", "github: {scope: organisation, runner_group: \"a\\nb\"}", `github.runner_group: is "a\nb"; write the name of a runner group`},
		{"App without id", "github: {apps: [{private_key_file: /k}]}", `1:17: github.apps[0]: has neither app_id nor client_id`},
		{"App with both ids", "github: {apps: [{app_id: 1, client_id: Iv23x, private_key_file: /k}]}", `1:29: github.apps[0].client_id: is there beside app_id`},
		{"App id", "github: {apps: [{app_id: 0, private_key_file: /k}]}", `github.apps[0].app_id: is 0; write a number from 1 to 2147483647`},
		{"client id", "github: {apps: [{client_id: 0123456789abcdef, private_key_file: /k}]}", `github.apps[0].client_id: is not the client id of an App; write one such as Iv23liAbCdEf01234567`},
		{"App without key", "github: {apps: [{app_id: 1}]}", `github.apps[0]: has no private key`},
		{"App with two keys", "github: {apps: [{app_id: 1, private_key_file: /k, private_key_env: K}]}", `github.apps[0].private_key_env: is there beside private_key_file`},
		{"relative key", "github: {apps: [{app_id: 1, private_key_file: k}]}", `github.apps[0].private_key_file: is "k"; write an absolute path`},
		{"key in the place of its variable", "github: {apps: [{app_id: 1, private_key_env: \"-----BEGIN\"}]}", `github.apps[0].private_key_env: is not the name of an environment variable; write one such as GITHUB_APP_KEY`},
		{"an App twice", "github: {apps: [{app_id: 1, private_key_file: /k}, {app_id: 1, private_key_file: /l}]}", `1:52: github.apps[1]: is here twice; remove one`},
		{"repository", "github: {repositories: [acme]}", `github.repositories[0]: is "acme"; write a repository as owner/name`},
		{"class", "resource_classes: {Large: {cpu: 1, memory_mib: 512}}", `resource_classes.Large: is no name of a resource class`},
		{"class without cpu", "resource_classes: {x: {memory_mib: 512}}", `2:20: resource_classes.x.cpu: is missing; write a number from 1 to 1024`},
		{"class with little memory", "resource_classes: {x: {cpu: 1, memory_mib: 1}}", `resource_classes.x.memory_mib: is 1; write a number from 128 to`},
		{"pool", "pools: {Build: {}}", `pools.Build: is no name of a pool`},
		{"pools", "pools:\n" + pools.String(), `pools: has 102 entries; write at most 100`},
		{"class with too few vCPU at most", "resource_classes: {x: {cpu: 4, memory_mib: 512, max_cpu: 3}}", `resource_classes.x.max_cpu: is 3; write a number from 4 to 1024`},
		{"class with too little memory at most", "resource_classes: {x: {cpu: 1, memory_mib: 512, max_memory_mib: 511}}", `resource_classes.x.max_memory_mib: is 511; write a number from 512 to`},
		{"unknown class", "pools: {default: {resource_classes: [large, huge]}}", `2:45: pools.default.resource_classes[1]: is no resource class; write one of 16xlarge, 2xlarge, 4xlarge, 8xlarge, large, xlarge`},
		{"usage class", "pools: {default: {usage_classes: [sport]}}", `pools.default.usage_classes[0]: "sport" is not allowed; did you mean spot?`},
		{"usage class twice", "pools: {default: {usage_classes: [spot, spot]}}", `pools.default.usage_classes[1]: is here twice`},
		{"instance type", "pools: {default: {instance_types: [\"c[6]\"]}}", `pools.default.instance_types[0]: is "c[6]"; write a pattern`},
		{"reuse", "pools: {default: {reuse: same-repo}}", `pools.default.reuse: "same-repo" is not allowed; did you mean same-repository?`},
		{"uses", "pools: {default: {max_uses: -1}}", `pools.default.max_uses: is -1; write a number from 0 to 1000000`},
		{"to run again without webhooks", "pools: {default: {rerun_interrupted: true}}", `pools.default.rerun_interrupted: means nothing without webhooks`},
		{"age", "pools: {default: {max_age: 1m}}", `pools.default.max_age: is 1m0s; write a duration from 5m0s to 720h0m0s`},
		{"age without reuse", "pools: {default: {max_age: 24h, reuse: none}}", `pools.default.max_age: means nothing with reuse: none`},
		{"drift", "pools: {default: {drift: stay}}", `pools.default.drift: "stay" is not allowed; known here: ignore, leave`},
		{"drift without reuse", "pools: {default: {drift: ignore, reuse: none}}", `pools.default.drift: means nothing with reuse: none`},
		{"script for after a run, local", "pools: {default: {post_release: /x}}", `pools.default.post_release: means nothing without aws`},
		{"listening without reuse", "pools: {default: {standby: listening, reuse: none}}", `pools.default.standby: is listening, and with reuse: none no host waits for another run`},
		{"listening for an owner", "pools: {default: {standby: listening, reuse: same-owner}}", `pools.default.standby: is listening, and with reuse: same-owner a host waits for runs of several repositories`},
		{"listening with default labels", "pools: {default: {standby: listening, default_labels: true}}", `pools.default.standby: is listening, and with default_labels GitHub`},
		{"unknown standby", "pools: {default: {standby: hot}}", `pools.default.standby: "hot" is not allowed; known here: clean, listening`},
		{"awake", "pools: {default: {awake: 0}}", `pools.default.awake: is 0; write a number from 1 to 200`},
		{"uses without reuse", "pools: {default: {max_uses: 2, reuse: none}}", `pools.default.max_uses: means nothing with reuse: none`},
		{"idle time without reuse", "pools: {default: {idle_time: 2h, reuse: none}}", `pools.default.idle_time: means nothing with reuse: none`},
		{"runtime", "pools: {default: {max_runtime: 121h}}", `pools.default.max_runtime: is 121h0m0s; write a duration from 1s to 120h0m0s`},
		{"idle time", "pools: {default: {idle_time: 0s}}", `pools.default.idle_time: is 0s; write a duration from 1s to 24h0m0s`},
		{"idle time within the margin", "pools: {default: {idle_time: 30s}}", `pools.default.idle_time: is 30s, and no host is claimed in the last 30s (timeouts.claim_margin): none ever would be`},
		{"pre-runner", "pools: {default: {pre_runner: x.sh}}", `pools.default.pre_runner: is "x.sh"; write an absolute path`},
		{"idle within the margin", "timeouts: {claim_margin: 5m}", `2:1: timeouts.idle: is 5m0s, and no host is claimed in the last 5m0s`},
		{"external below release", "timeouts: {release: 31m}", `timeouts.external: is 30m0s, less than timeouts.release (31m0s)`},
		{"silence", "timeouts: {silence: 29s}", `timeouts.silence: is 29s; write a duration from 30s to 30m0s`},
		{"two places", aws("") + "store: {sqlite: {path: /x}}", `store: is there beside aws`},
		{"two kinds of host", aws("") + "compute: {process: {}}", `compute: is there beside aws`},
		{"region", aws("region: Ireland"), `aws.region: is "Ireland"; write a region such as eu-west-1`},
		{"prefix", aws("prefix: My_Fleet"), `aws.prefix: is "My_Fleet"; write 1 to 20 of a-z 0-9 and -`},
		{"profile", strings.Replace(aws(""), "remuda-host", "arn:aws:iam::1:instance-profile/x", 1), `aws.instance_profile: is "arn:aws:iam::1:instance-profile/x"`},
		{"image", aws("ec2: {images: {x86_64: latest}, subnets: [subnet-12345678], security_groups: [sg-12345678]}"), `aws.ec2.images.x86_64: is "latest"; write the id of an image`},
		{"architecture", aws("ec2: {images: {amd64: ami-12345678}, subnets: [subnet-12345678], security_groups: [sg-12345678]}"), `aws.ec2.images.amd64: is no architecture; write x86_64 or arm64`},
		{"no subnets", aws("ec2: {images: {arm64: ami-12345678}, security_groups: [sg-12345678]}"), `aws.ec2.subnets: is missing, and pool default needs it`},
		{"subnet", aws("ec2: {images: {arm64: ami-12345678}, subnets: [subnet], security_groups: [sg-12345678]}"), `aws.ec2.subnets[0]: is "subnet"; write the id of a subnet`},
		{"taken tag", aws("") + "pools: {default: {ec2: {tags: {\"remuda:pool\": x}}}}", `pools.default.ec2.tags["remuda:pool"]: begins with aws: or remuda:`},
		{"long tag key", aws("") + "pools: {default: {ec2: {tags: {" + strings.Repeat("a", 128) + ": b}}}}", `is no key of a tag; write 1 to 127 of letters`},
		{"tag key of the metadata", aws("") + "pools: {default: {ec2: {tags: {_index: b}}}}", `pools.default.ec2.tags._index: is no key of a tag`},
		{"tag key of one dot", aws("") + "pools: {default: {ec2: {tags: {.: b}}}}", `pools.default.ec2.tags["."]: is no key of a tag`},
		{"long tag", aws("") + "pools: {default: {ec2: {tags: {a: " + strings.Repeat("é", 257) + "}}}}", `pools.default.ec2.tags.a: is no value of a tag`},
		{"odd tag", aws("") + "pools: {default: {ec2: {tags: {a: \"b;c\"}}}}", `pools.default.ec2.tags.a: is no value of a tag`},
		{"taken tag of all", aws("tags: {\"AWS:x\": y}"), `aws.tags["AWS:x"]: begins with aws: or remuda:`},
		{"@ in a tag of all", aws("tags: {a: b@c}"), `aws.tags.a: has an @, which tags of tables may not have`},
		{"@ in a key of all", aws("tags: {a@b: c}"), `aws.tags["a@b"]: has an @`},
		{"odd tag of all", aws("tags: {a: \"b;c\"}"), `aws.tags.a: is no value of a tag`},
		{"many tags of all", aws("tags: {" + manyTags(31) + "}"), `aws.tags: has 31 entries; write at most 30`},
		{"much in tags of all", aws("tags: {" + manyTags(20, strings.Repeat("é", 250)) + "}"), `aws.tags: have 10080 bytes together; write at most 9900`},
		{"many tags together", aws("tags: {"+manyTags(30)+"}") + "pools: {default: {ec2: {tags: {more: b}}}}", `pools.default.ec2.tags: make it 31 tags of pool default, with those of aws; write at most 30 together`},
		{"small volume", aws("") + "pools: {default: {ec2: {root_volume_gib: 4}}}", `pools.default.ec2.root_volume_gib: is 4; write a number from 8 to 16384`},
		{"few IOPS", aws("") + "pools: {default: {ec2: {root_volume_iops: 2999}}}", `pools.default.ec2.root_volume_iops: is 2999; write a number from 3000 to 80000`},
		{"many IOPS", aws("") + "pools: {default: {ec2: {root_volume_gib: 500, root_volume_iops: 80001}}}", `pools.default.ec2.root_volume_iops: is 80001; write a number from 3000 to 80000`},
		{"IOPS of a small volume", aws("") + "pools: {default: {ec2: {root_volume_iops: 25001}}}", `pools.default.ec2.root_volume_iops: is 25001, and a volume of 50 GiB has at most 25000; write less, or a larger root_volume_gib`},
		{"little throughput", aws("") + "pools: {default: {ec2: {root_volume_throughput: 124}}}", `pools.default.ec2.root_volume_throughput: is 124; write a number from 125 to 2000`},
		{"much throughput", aws("") + "pools: {default: {ec2: {root_volume_iops: 9000, root_volume_throughput: 2001}}}", `pools.default.ec2.root_volume_throughput: is 2001; write a number from 125 to 2000`},
		{"throughput of few IOPS", aws("") + "pools: {default: {ec2: {root_volume_throughput: 751}}}", `pools.default.ec2.root_volume_throughput: is 751, and needs 4 IOPS for each MiB/s; write at most 750, or a root_volume_iops of 3004`},
		{"no family", aws("") + "pools: {default: {ec2: {cpu_baseline: c6i.large}}}", `pools.default.ec2.cpu_baseline: is "c6i.large"; write a family of instance types`},
		{"a family that is not compared", aws("") + "pools: {default: {ec2: {cpu_baseline: p4d}}}", `pools.default.ec2.cpu_baseline: is "p4d"; write a family of instance types`},
		{"odd key", aws("") + "pools: {default: {ec2: {kms_key_id: \"arn:aws:kms:eu-west-1:1:key/x\"}}}", `pools.default.ec2.kms_key_id: is "arn:aws:kms:eu-west-1:1:key/x"; write the id of a KMS key`},
		{"alias without its prefix", aws("") + "pools: {default: {ec2: {kms_key_id: ci-volumes}}}", `pools.default.ec2.kms_key_id: is "ci-volumes"; write the id of a KMS key, an alias such as alias/ci`},
		{"key of another region", aws("region: eu-west-1") + "pools: {default: {ec2: {kms_key_id: \"arn:aws:kms:us-east-1:123456789012:alias/ci\"}}}",
			`pools.default.ec2.kms_key_id: is a key of us-east-1, and the fleet is in eu-west-1; write a key of that region`},
		{"EC2 without AWS", "pools: {default: {ec2: {burstable: true}}}", `pools.default.ec2: means nothing without aws`},
		{"level", "log: {level: loud}", `log.level: "loud" is not allowed; known here: debug, error, info, trace, warn`},
		{"format", "log: {format: jsno}", `log.format: "jsno" is not allowed; did you mean json?`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := token + test.text
			if strings.HasPrefix(test.text, "github: {apps: ") {
				text = test.text
			} else if strings.HasPrefix(test.text, "github: {") {
				text = "github: {token_env: X, " + strings.TrimPrefix(test.text, "github: {")
			}
			_, err := config.Parse("f", []byte(text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got:\n%v\nwant:\n%s", err, test.want)
			}
			if strings.Contains(fmt.Sprint(err), "\n") {
				t.Errorf("more than one problem:\n%v", err)
			}
		})
	}
}

func TestWhatIsAllowed(t *testing.T) {
	for name, text := range map[string]string{
		"free ports":                 "grpc: {addr: \"localhost:0\"}\nhttp: {addr: \"localhost:0\"}",
		"loopback IPv6":              "grpc: {addr: \"[::1]:7443\"}",
		"public HTTP":                "http: {addr: \":7080\"}",
		"stand-in":                   "",
		"no hosts of a kind":         "compute: {process: {capacity: {\"*\": 0}}}",
		"a cache of the repository":  cached("{name: go, paths: [~/go], size_mib: 1, from: [main, release/*], keep: 1h}"),
		"a cache of tools":           cached("{name: go, paths: [~/go], size_mib: 1}, {name: tools, holds: tools, size_mib: 1}"),
		"a cache of the owner":       "pools: {default: {reuse: same-owner, caches: [{name: go, paths: [~/go], size_mib: 1, scope: owner}]}}",
		"once and no more":           "pools: {default: {reuse: none, max_uses: 1}}",
		"no margin":                  "timeouts: {claim_margin: 0s, idle: 1s}",
		"the most tags of all":       aws("tags: {" + manyTags(30) + "}"),
		"a tag of all and of a pool": aws("tags: {a: \"é /b:c\"}") + "pools: {default: {ec2: {tags: {a: b@c}}}}",
		"the longest tag":            aws("region: eu-west-1, ec2: {images: {arm64: ami-12345678}, subnets: [subnet-12345678], security_groups: [sg-12345678], tags: {a: " + strings.Repeat("é", 256) + "}}"),
	} {
		t.Run(name, func(t *testing.T) { parse(t, text) })
	}
	for _, text := range []string{
		"url: \"http://127.0.0.1:7081/api/v3\", token_file: /t",
		"url: \"https://ghes.acme.com/api/v3\", ca_file: /ca, token_env: T",
		"apps: [{app_id: 1, private_key_file: /k}, {client_id: Iv23liAbCdEf01234567, private_key_env: K}]",
		"token_env: T, scope: organisation, runner_group: Big builders",
	} {
		if _, err := config.Parse("f", []byte("github: {"+text+"}")); err != nil {
			t.Error(err)
		}
	}
	if _, err := config.Parse("f", []byte(withApp+cached("{name: git, holds: git, size_mib: 1}"))); err != nil {
		t.Error(err)
	}
}

// A token in the place of its variable's name must not end up in a log.
func TestATokenInTheWrongPlaceIsNotShown(t *testing.T) {
	_, err := config.Parse("f", []byte("github: {token_env: github-pat-secret}"))
	if err == nil || !strings.Contains(err.Error(), "github.token_env: is not the name") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// Every duration and number has bounds: one far out of them is refused,
// wherever it is written.
func TestEveryNumberHasBounds(t *testing.T) {
	for _, l := range inventory.Keys() {
		values := []string{"-1", "99999999999"}
		switch {
		case l.IsDuration():
			values = []string{"-1s", "99999h"}
		case !l.IsNumber():
			continue
		}
		for _, v := range values {
			_, err := config.Parse("f", []byte(document(l, v)))
			if !strings.Contains(fmt.Sprint(err), ": "+problemPath(l)+": ") {
				t.Errorf("%s: %s was taken: %v", l.Path, v, err)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(token))
	f.Add([]byte(token + signed + "pools: {x: {jobs: {labels: [a], maximum: 1, minimum: 1, repositories: [a/b]}}}\n"))
	f.Add([]byte("grpc: {addr: \":1\", tls: {}}\npools: {\"a b\": {reuse: none, idle_time: 1s}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("f", data)
		if (c == nil) == (err == nil) {
			t.Fatalf("got %v, %v", c, err)
		}
		if err != nil {
			return
		}
		if d := cmp.Diff(nil, c.Check("again")); d != "" {
			t.Fatal(d)
		}
		for name := range c.Pools {
			if c.Policy(name).Reuse == "" || len(c.PoolResourceClasses(name)) == 0 {
				t.Fatalf("pool %s: %+v", name, c.Pools[name])
			}
		}
		c.Warnings()
	})
}

// manyTags are n tags with the same value, as YAML.
func manyTags(n int, value ...string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("k%d: x%s", i+10, strings.Join(value, "")))
	}
	return strings.Join(all, ", ")
}
