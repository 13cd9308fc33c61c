# One machine, private. To upgrade, change `package`: the machine is replaced, its address and its
# volume stay, and the new controller takes over what runs.

locals {
  user_data = templatefile("${path.module}/files/user-data.sh.tftpl", {
    name          = var.name
    region        = data.aws_region.this.region
    address       = aws_network_interface.this.private_ip
    volume        = replace(aws_ebs_volume.state.id, "-", "")
    package       = var.package
    pip_index_url = coalesce(var.pip_index_url, "none")
    python        = var.python
    ledger        = coalesce(var.ledger_parameter, "none")
    start         = file("${path.module}/files/hybrid-head.sh")
    fetch         = file("${path.module}/files/fetch.py")
  })
}

resource "aws_instance" "this" {
  #checkov:skip=CKV_AWS_88:It has an interface of its own, in a private subnet, without a public address.
  ami                                  = var.image
  instance_type                        = var.instance_type
  iam_instance_profile                 = aws_iam_instance_profile.this.name
  ebs_optimized                        = true
  monitoring                           = true
  disable_api_termination              = var.protect
  instance_initiated_shutdown_behavior = "stop"
  user_data                            = local.user_data
  user_data_replace_on_change          = true

  primary_network_interface {
    network_interface_id = aws_network_interface.this.id
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_type           = "gp3"
    volume_size           = 30
    encrypted             = true
    kms_key_id            = var.kms_key_arn
    delete_on_termination = true
  }

  tags = merge(local.tags, { Name = "${var.name}-head" })
}
