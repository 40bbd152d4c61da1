build {
  # Ubuntu 24.04, by Canonical.
  source "source.amazon-ebs.host" {
    name          = "ubuntu-24.04-amd64"
    ami_name      = "${local.name_start}-ubuntu-24.04-amd64-${local.name_time}"
    instance_type = "m7i.large"
    ssh_username  = "ubuntu"
    source_ami_filter {
      owners      = ["099720109477"]
      most_recent = true
      filters = {
        name                = "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-*"
        architecture        = "x86_64"
        root-device-type    = "ebs"
        virtualization-type = "hvm"
      }
    }
    launch_block_device_mappings {
      device_name           = "/dev/sda1"
      volume_size           = var.volume_gib
      volume_type           = "gp3"
      iops                  = 3000
      throughput            = 125
      encrypted             = true
      kms_key_id            = var.kms_key_id
      delete_on_termination = true
    }
  }

  source "source.amazon-ebs.host" {
    name          = "ubuntu-24.04-arm64"
    ami_name      = "${local.name_start}-ubuntu-24.04-arm64-${local.name_time}"
    instance_type = "m7g.large"
    ssh_username  = "ubuntu"
    source_ami_filter {
      owners      = ["099720109477"]
      most_recent = true
      filters = {
        name                = "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-arm64-server-*"
        architecture        = "arm64"
        root-device-type    = "ebs"
        virtualization-type = "hvm"
      }
    }
    launch_block_device_mappings {
      device_name           = "/dev/sda1"
      volume_size           = var.volume_gib
      volume_type           = "gp3"
      iops                  = 3000
      throughput            = 125
      encrypted             = true
      kms_key_id            = var.kms_key_id
      delete_on_termination = true
    }
  }

  # Debian 12, by Debian.
  source "source.amazon-ebs.host" {
    name          = "debian-12-amd64"
    ami_name      = "${local.name_start}-debian-12-amd64-${local.name_time}"
    instance_type = "m7i.large"
    ssh_username  = "admin"
    source_ami_filter {
      owners      = ["136693071363"]
      most_recent = true
      filters = {
        name                = "debian-12-amd64-*"
        architecture        = "x86_64"
        root-device-type    = "ebs"
        virtualization-type = "hvm"
      }
    }
    launch_block_device_mappings {
      device_name           = "/dev/xvda"
      volume_size           = var.volume_gib
      volume_type           = "gp3"
      iops                  = 3000
      throughput            = 125
      encrypted             = true
      kms_key_id            = var.kms_key_id
      delete_on_termination = true
    }
  }

  source "source.amazon-ebs.host" {
    name          = "debian-12-arm64"
    ami_name      = "${local.name_start}-debian-12-arm64-${local.name_time}"
    instance_type = "m7g.large"
    ssh_username  = "admin"
    source_ami_filter {
      owners      = ["136693071363"]
      most_recent = true
      filters = {
        name                = "debian-12-arm64-*"
        architecture        = "arm64"
        root-device-type    = "ebs"
        virtualization-type = "hvm"
      }
    }
    launch_block_device_mappings {
      device_name           = "/dev/xvda"
      volume_size           = var.volume_gib
      volume_type           = "gp3"
      iops                  = 3000
      throughput            = 125
      encrypted             = true
      kms_key_id            = var.kms_key_id
      delete_on_termination = true
    }
  }

  # Amazon Linux 2023, by Amazon. These two are validated, and have never been built or run: their packages could not be tried.
  source "source.amazon-ebs.host" {
    name          = "al2023-amd64"
    ami_name      = "${local.name_start}-al2023-amd64-${local.name_time}"
    instance_type = "m7i.large"
    ssh_username  = "ec2-user"
    source_ami_filter {
      owners      = ["amazon"]
      most_recent = true
      filters = {
        name                = "al2023-ami-2023.*-kernel-*-x86_64"
        architecture        = "x86_64"
        root-device-type    = "ebs"
        virtualization-type = "hvm"
      }
    }
    launch_block_device_mappings {
      device_name           = "/dev/xvda"
      volume_size           = var.volume_gib
      volume_type           = "gp3"
      iops                  = 3000
      throughput            = 125
      encrypted             = true
      kms_key_id            = var.kms_key_id
      delete_on_termination = true
    }
  }

  source "source.amazon-ebs.host" {
    name          = "al2023-arm64"
    ami_name      = "${local.name_start}-al2023-arm64-${local.name_time}"
    instance_type = "m7g.large"
    ssh_username  = "ec2-user"
    source_ami_filter {
      owners      = ["amazon"]
      most_recent = true
      filters = {
        name                = "al2023-ami-2023.*-kernel-*-arm64"
        architecture        = "arm64"
        root-device-type    = "ebs"
        virtualization-type = "hvm"
      }
    }
    launch_block_device_mappings {
      device_name           = "/dev/xvda"
      volume_size           = var.volume_gib
      volume_type           = "gp3"
      iops                  = 3000
      throughput            = 125
      encrypted             = true
      kms_key_id            = var.kms_key_id
      delete_on_termination = true
    }
  }

  provisioner "shell" {
    inline = ["rm -rf /tmp/remuda-image", "mkdir /tmp/remuda-image"]
  }

  provisioner "file" {
    source      = "${path.root}/scripts"
    destination = "/tmp/remuda-image"
  }

  provisioner "file" {
    only        = ["amazon-ebs.ubuntu-24.04-amd64", "amazon-ebs.debian-12-amd64"]
    source      = "${var.agentd_packages}/remuda-agentd_${var.agentd_version}-1_amd64.deb"
    destination = "/tmp/remuda-image/remuda-agentd.deb"
  }

  provisioner "file" {
    only        = ["amazon-ebs.ubuntu-24.04-arm64", "amazon-ebs.debian-12-arm64"]
    source      = "${var.agentd_packages}/remuda-agentd_${var.agentd_version}-1_arm64.deb"
    destination = "/tmp/remuda-image/remuda-agentd.deb"
  }

  provisioner "file" {
    only        = ["amazon-ebs.al2023-amd64"]
    source      = "${var.agentd_packages}/remuda-agentd-${var.agentd_version}-1.x86_64.rpm"
    destination = "/tmp/remuda-image/remuda-agentd.rpm"
  }

  provisioner "file" {
    only        = ["amazon-ebs.al2023-arm64"]
    source      = "${var.agentd_packages}/remuda-agentd-${var.agentd_version}-1.aarch64.rpm"
    destination = "/tmp/remuda-image/remuda-agentd.rpm"
  }

  provisioner "shell" {
    only            = ["amazon-ebs.ubuntu-24.04-amd64", "amazon-ebs.debian-12-amd64"]
    execute_command = local.as_root
    environment_vars = concat(local.environment, [
      "REMUDA_AGENTD_PACKAGE=/tmp/remuda-image/remuda-agentd.deb",
      "REMUDA_RUNNER_SHA256=${var.runner_sha256_x64}",
    ])
    inline = ["bash /tmp/remuda-image/scripts/provision.sh", "rm -rf /tmp/remuda-image"]
  }

  provisioner "shell" {
    only            = ["amazon-ebs.ubuntu-24.04-arm64", "amazon-ebs.debian-12-arm64"]
    execute_command = local.as_root
    environment_vars = concat(local.environment, [
      "REMUDA_AGENTD_PACKAGE=/tmp/remuda-image/remuda-agentd.deb",
      "REMUDA_RUNNER_SHA256=${var.runner_sha256_arm64}",
    ])
    inline = ["bash /tmp/remuda-image/scripts/provision.sh", "rm -rf /tmp/remuda-image"]
  }

  provisioner "shell" {
    only            = ["amazon-ebs.al2023-amd64"]
    execute_command = local.as_root
    environment_vars = concat(local.environment, [
      "REMUDA_AGENTD_PACKAGE=/tmp/remuda-image/remuda-agentd.rpm",
      "REMUDA_RUNNER_SHA256=${var.runner_sha256_x64}",
    ])
    inline = ["bash /tmp/remuda-image/scripts/provision.sh", "rm -rf /tmp/remuda-image"]
  }

  provisioner "shell" {
    only            = ["amazon-ebs.al2023-arm64"]
    execute_command = local.as_root
    environment_vars = concat(local.environment, [
      "REMUDA_AGENTD_PACKAGE=/tmp/remuda-image/remuda-agentd.rpm",
      "REMUDA_RUNNER_SHA256=${var.runner_sha256_arm64}",
    ])
    inline = ["bash /tmp/remuda-image/scripts/provision.sh", "rm -rf /tmp/remuda-image"]
  }

  # The ids of the images, one entry for each, for `aws.ec2.images` of the configuration.
  post-processor "manifest" {
    output     = var.manifest
    strip_path = true
    custom_data = {
      agentd = var.agentd_version
      runner = var.runner_version
    }
  }
}
