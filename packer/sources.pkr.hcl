locals {
  built     = timestamp()
  name_time = formatdate("YYYYMMDD-hhmmss", local.built)
  # The name of an image takes neither the plus of a version between releases nor the tilde of one before.
  name_start = "remuda-host-${replace(replace(var.agentd_version, "+", "-"), "~", "-")}"
  runner_url = var.runner_url != "" ? var.runner_url : "https://github.com/actions/runner/releases/download/v${var.runner_version}"

  # The scripts need root, and nothing of the environment but these.
  as_root = "sudo -n env {{ .Vars }} bash -eu '{{ .Path }}'"
  environment = [
    "REMUDA_AGENTD_VERSION=${var.agentd_version}",
    "REMUDA_RUNNER_VERSION=${var.runner_version}",
    "REMUDA_RUNNER_URL=${local.runner_url}",
    "REMUDA_HOST_LOGS=${var.host_logs}",
    "REMUDA_CLOUDWATCH_AGENT_VERSION=${var.cloudwatch_agent_version}",
    "REMUDA_CLOUDWATCH_AGENT_URL=${var.cloudwatch_agent_url}",
  ]

  # Not remuda:fleet: a build instance or an image is no host, and no sweep may look at it.
  tags = {
    "remuda:image"          = local.name_start
    "remuda:agentd-version" = var.agentd_version
    "remuda:runner-version" = var.runner_version
    "remuda:built"          = local.built
  }
}

# What all images have in common. Each architecture and system below adds its own.
source "amazon-ebs" "host" {
  region          = var.region
  subnet_id       = var.subnet_id
  ami_description = "Remuda host: agentd ${var.agentd_version}, actions/runner ${var.runner_version}"

  ena_support                           = true
  associate_public_ip_address           = true
  temporary_key_pair_type               = "ed25519"
  temporary_security_group_source_cidrs = var.ssh_from

  tags            = merge(local.tags, { "remuda:source-image" = "{{ .SourceAMI }}", "remuda:source-name" = "{{ .SourceAMIName }}" })
  snapshot_tags   = local.tags
  run_tags        = merge(local.tags, { "Name" = "${local.name_start}-build" })
  run_volume_tags = local.tags

  # A snapshot of 30 GiB takes longer than Packer's own 10 minutes on a bad day.
  aws_polling {
    delay_seconds = 15
    max_attempts  = 160
  }

  # newer: begin. What Packer 1.6 does not know; scripts/packer leaves it out there.
  deprecate_at = timeadd(local.built, var.deprecate_after)
  # The build instance answers no request for metadata without a token, and neither does a host of the image, whatever launches it. That
  # the answer goes one hop and no further is for the launch template to say: an image alone would allow two.
  imds_support = "v2.0"
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }
  # newer: end.
}
