output "hybrid_provider" {
  description = "The account for hybrid: `providers.aws` of hybrid.yaml and, as pools, its `clouds.ordered`. `hybrid up --from-terraform DIR` reads it."
  value = {
    provider = "aws"
    regions = {
      (local.region) = {
        image            = var.image
        subnets          = local.subnets
        security_groups  = [aws_security_group.node.id]
        instance_profile = aws_iam_instance_profile.node.name
        key_name         = var.key_name
        disk             = "${var.disk_gib}GiB"
        kms_key          = var.kms_key_arn
      }
    }
    tags = var.tags
    pools = [
      for pool in var.pools : {
        infra                   = pool.zone == null ? "aws/${local.region}" : "aws/${local.region}/${pool.zone}"
        instance_type           = pool.instance_type
        use_spot                = pool.use_spot
        max_nodes               = pool.max_nodes
        usd_per_hour            = pool.usd_per_hour
        spot_limit_usd_per_hour = pool.spot_limit_usd_per_hour
      }
    ]
  }
}

output "name" {
  description = "Name of the cluster: `name` of hybrid.yaml must be the same, or the launcher may do nothing."
  value       = var.name
}

output "checkpoints" {
  description = "Folder of checkpoints in the bucket: `jobs.checkpoints` of hybrid.yaml."
  value       = "s3://${local.bucket}/checkpoints"
}

output "bucket" {
  description = "Name of the bucket."
  value       = local.bucket
}

output "vpc_id" {
  description = "The network."
  value       = local.vpc_id
}

output "private_subnet_ids" {
  description = "The nodes' subnet of each zone."
  value       = local.subnets
}

output "security_group_id" {
  description = "The nodes' security group."
  value       = aws_security_group.node.id
}

output "launcher_policy_arn" {
  description = "Attach it to the identity that hybrid runs as, and nothing more."
  value       = aws_iam_policy.launcher.arn
}

output "data_policy_arn" {
  description = "Attach it to the identity of own machines that read or write checkpoints in the bucket."
  value       = aws_iam_policy.data.arn
}

output "launch_template_id" {
  description = "Starts a machine like a node by hand, to build or try an image."
  value       = aws_launch_template.node.id
}

output "vpn_tunnel_addresses" {
  description = "Addresses of the VPN's two tunnels, for your device; none without a VPN."
  value       = flatten([for vpn in aws_vpn_connection.this : [vpn.tunnel1_address, vpn.tunnel2_address]])
}
