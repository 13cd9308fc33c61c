# What a machine of this cluster is made of, for those who start one by hand: to build an image,
# or to look whether one boots. hybrid makes its own templates, one for each kind of machine.

resource "aws_launch_template" "node" {
  name                                 = "${var.name}-node"
  description                          = "A machine like the nodes of the cluster ${var.name}, started by hand"
  image_id                             = can(regex("^ami-", var.image)) ? var.image : local.is_ssm ? "resolve:${var.image}" : null
  key_name                             = var.key_name
  update_default_version               = true
  instance_initiated_shutdown_behavior = "terminate"
  vpc_security_group_ids               = [aws_security_group.node.id]

  iam_instance_profile {
    name = aws_iam_instance_profile.node.name
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
    instance_metadata_tags      = "enabled"
  }

  block_device_mappings {
    device_name = "/dev/sda1"
    ebs {
      volume_size           = var.disk_gib
      volume_type           = "gp3"
      encrypted             = "true"
      kms_key_id            = var.kms_key_arn
      delete_on_termination = "true"
    }
  }

  dynamic "tag_specifications" {
    for_each = ["instance", "volume"]
    content {
      resource_type = tag_specifications.value
      tags          = merge(local.tags, { Name = "${var.name} by hand" })
    }
  }

  tags = merge(local.tags, { Name = "${var.name}-node" })
}
