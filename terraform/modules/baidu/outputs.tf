output "hybrid_provider" {
  description = "The account for hybrid: `providers.baidu` of hybrid.yaml and, as pools, its `clouds.ordered`. `hybrid up --from-terraform DIR` reads it."
  value = {
    provider        = "baidu"
    exchange        = var.exchange
    image           = var.image
    subnets         = local.subnets
    security_groups = [baiducloud_security_group.node.id]
    key_pair        = one(baiducloud_bcc_key_pair.this[*].id)
    root_disk_gb    = var.root_disk_gb
    resource_group  = var.resource_group
    pools = [
      for pool in var.pools : {
        infra         = pool.zone == null ? "baidu/${var.region}" : "baidu/${var.region}/${pool.zone}"
        instance_type = pool.instance_type
        accelerators  = pool.accelerators
        cpus          = pool.cpus
        memory        = pool.memory
        use_spot      = pool.use_spot
        max_nodes     = pool.max_nodes
        usd_per_hour  = pool.usd_per_hour
        cny_per_hour  = pool.cny_per_hour
        subnet        = pool.zone == null ? local.subnets[sort(keys(local.subnet_zones))[0]] : local.subnets[pool.zone]
      }
    ]
  }
}

output "name" {
  description = "Name of the cluster: `name` of hybrid.yaml."
  value       = var.name
}

output "bucket" {
  description = "Name of the bucket."
  value       = local.bucket
}

output "vpc_id" {
  description = "The network."
  value       = local.vpc_id
}

output "subnet_ids" {
  description = "The nodes' subnet of each zone."
  value       = local.subnets
}

output "security_group_id" {
  description = "The nodes' security group."
  value       = baiducloud_security_group.node.id
}

output "launcher_user" {
  description = "The user that hybrid runs as: make an access key of it, for BAIDUCLOUD_ACCESS_KEY and BAIDUCLOUD_SECRET_KEY."
  value       = baiducloud_iam_user.launcher.name
}

output "launcher_encrypted_secret" {
  description = "Secret of the launcher's access key, encrypted with launcher_pgp_key; none without one."
  value       = one(baiducloud_iam_access_key.launcher[*].encrypted_secret)
}

output "data_policy" {
  description = "Policy for users that read or write checkpoints in the bucket."
  value       = baiducloud_iam_policy.data.name
}

output "vpn_gateway_id" {
  description = "The cloud's side of the VPN; none without a VPN."
  value       = one(baiducloud_vpn_gateway.this[*].id)
}
