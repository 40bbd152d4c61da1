// Package awstest is AWS for tests: Amazon's DynamoDB Local for the store, and moto's server for EC2, ECS,
// SQS, STS and IAM. make test starts each once and hands it over to all test binaries; a lone go test starts
// it when a test first asks for it. scripts/emulators installs them by itself.
//
// Every test has a world of its own in them, so that tests may run in parallel
// and give the same names to their tables, queues and machines:
//
//   - Config gives each test (each testing.TB) its own access key, by which
//     DynamoDB Local tells databases apart, and its own account, which moto
//     reads from a header. All configurations of one test share its world; a
//     subtest has another one, unless it uses the configuration of its parent.
//   - What moto keeps for the whole process, such as its transitions of
//     states, is for a test that owns its moto: NewMoto.
//   - Machines and queues stay until moto ends, and disturb no other test. When
//     a test is over, its tables are deleted, and a later test gets its access
//     key: a database costs DynamoDB Local something even if it is idle.
package awstest
