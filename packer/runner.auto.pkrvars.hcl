# The one place that says which actions/runner an image has: docs/image.md tells how a person checks and renews these three values.
runner_version      = "2.338.0"
runner_sha256_x64   = "af4b794c1bc41d73d40535e3fe092a39f9679cd8d965954c2aca25a05ca41d32"
runner_sha256_arm64 = "628b4a7258487b80c1d3c221095a7ded349f5ae0175fd3dfab708d07428f041b"
