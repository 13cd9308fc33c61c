# What must outlive the machine: ledger (SQLite), logs, output of jobs. And the configuration, which
# the head reads at each start of its service, so that a change replaces no machine.

resource "aws_ebs_volume" "state" {
  availability_zone = var.availability_zone
  size              = var.volume_gib
  type              = "gp3"
  encrypted         = true
  kms_key_id        = var.kms_key_arn
  final_snapshot    = true # a destroy leaves a copy
  tags              = merge(local.tags, { Name = "${var.name}-head-state" })
}

resource "aws_volume_attachment" "state" {
  device_name                    = "/dev/sdf"
  volume_id                      = aws_ebs_volume.state.id
  instance_id                    = aws_instance.this.id
  stop_instance_before_detaching = true
}

resource "aws_ssm_parameter" "config" {
  #checkov:skip=CKV2_AWS_34:hybrid.yaml holds no secrets; see the argument config.
  name        = "/hybrid/${var.name}/head/hybrid.yaml"
  description = "hybrid.yaml of the cluster ${var.name}"
  type        = "String"
  tier        = "Intelligent-Tiering"
  value       = var.config
  tags        = local.tags
}

resource "aws_ssm_parameter" "outputs" {
  #checkov:skip=CKV2_AWS_34:Ids of networks and images, no secrets.
  name        = "/hybrid/${var.name}/head/outputs.json"
  description = "What Terraform made for the cluster ${var.name}, as terraform output -json prints it"
  type        = "String"
  tier        = "Intelligent-Tiering"
  value       = jsonencode({ for key, item in var.hybrid_providers : key => { value = item } })
  tags        = local.tags
}
