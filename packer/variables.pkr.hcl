variable "region" {
  type        = string
  description = "Where the images are built."
}

variable "ssh_from" {
  type        = list(string)
  description = "The CIDRs from which Packer reaches the build instances, such as 203.0.113.7/32. There is no default: Packer's own is everybody."
  validation {
    condition     = length(var.ssh_from) > 0
    error_message = "The ssh_from must name a CIDR: without one Packer would let everybody in."
  }
}

variable "agentd_version" {
  type        = string
  description = "The version of the remuda-agentd packages, such as 1.0.0."
}

variable "agentd_packages" {
  type        = string
  description = "The directory of the remuda-agentd packages, as make release or make packages leaves it."
}

variable "runner_version" {
  type        = string
  description = "The version of actions/runner, without a v. See runner.auto.pkrvars.hcl."
}

variable "runner_sha256_x64" {
  type        = string
  description = "The SHA-256 of actions-runner-linux-x64-<runner_version>.tar.gz."
  validation {
    condition     = length(var.runner_sha256_x64) == 64
    error_message = "The runner_sha256_x64 must be a SHA-256 in hexadecimal."
  }
}

variable "runner_sha256_arm64" {
  type        = string
  description = "The SHA-256 of actions-runner-linux-arm64-<runner_version>.tar.gz."
  validation {
    condition     = length(var.runner_sha256_arm64) == 64
    error_message = "The runner_sha256_arm64 must be a SHA-256 in hexadecimal."
  }
}

variable "runner_url" {
  type        = string
  default     = ""
  description = "Where the runner's archive is fetched from instead of GitHub's release: a mirror. The SHA-256 stays the judge."
}

variable "host_logs" {
  type        = string
  default     = ""
  description = "The log group to which hosts send what agentd, cloud-init and the kernel say, such as /remuda/remuda/hosts; empty for none."
}

variable "cloudwatch_agent_version" {
  type        = string
  default     = "1.300071.0b1720"
  description = "The version of amazon-cloudwatch-agent that host_logs installs, with its build. It reads the journal from 1.300070.0 on."
}

variable "cloudwatch_agent_url" {
  type        = string
  default     = ""
  description = "Where the CloudWatch agent is fetched from instead of AWS's bucket: a mirror. AWS's signature stays the judge."
}

variable "subnet_id" {
  type        = string
  default     = null
  description = "The subnet of the build instances; otherwise one of the default VPC."
}

variable "kms_key_id" {
  type        = string
  default     = null
  description = "The key of the volumes and snapshots; otherwise the account's aws/ebs, with which an image cannot be shared."
}

variable "volume_gib" {
  type        = number
  default     = 30
  description = "The size of the root volume. A pool can give its hosts more; never less."
}

variable "deprecate_after" {
  type        = string
  default     = "1440h"
  description = "After so long EC2 no longer lists an image. 60 days: a runner older than 30 days gets no jobs, and a pool may be late."
}

variable "manifest" {
  type        = string
  default     = "packer-manifest.json"
  description = "The file that the manifest is written to."
}
