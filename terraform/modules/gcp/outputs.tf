output "hybrid_provider" {
  description = "The account for hybrid: `providers.gcp` of hybrid.yaml and, as pools, its `clouds.ordered`. `hybrid up --from-terraform DIR` reads it."
  value = {
    provider      = "gcp"
    project       = var.project
    image         = var.image
    external_ip   = false
    delete_itself = var.nodes_delete_themselves
    disk          = "${var.disk_gib}GiB"
    disk_type     = var.disk_type
    max_life      = var.max_life_hours == null ? null : "${var.max_life_hours}h"
    tags          = var.tags
    pools = [
      for pool in var.pools : {
        infra         = "gcp/${var.region}/${pool.zone}"
        instance_type = pool.instance_type
        accelerators  = pool.accelerators
        attached_gpu  = pool.attached_gpu
        cpus          = pool.cpus
        memory        = pool.memory
        use_spot      = pool.use_spot
        max_nodes     = pool.max_nodes
        usd_per_hour  = pool.usd_per_hour

        # With the pool, not the account: another region's module has its own.
        subnetwork      = local.subnetwork
        service_account = local.node_email
      }
    ]
  }
}

output "name" {
  description = "Name of the cluster: `name` of hybrid.yaml should be the same, or the budget's alarm counts nothing."
  value       = var.name
}

output "checkpoints" {
  description = "Folder of checkpoints in the bucket: `jobs.checkpoints` of hybrid.yaml."
  value       = "gs://${local.bucket}/checkpoints"
}

output "bucket" {
  description = "Name of the bucket."
  value       = local.bucket
}

output "network" {
  description = "The network."
  value       = local.network
}

output "node_service_account" {
  description = "Account of the nodes: it may use the bucket and, unless nodes_delete_themselves is false, delete instances of hybrid."
  value       = local.node_email
}

output "launcher_role" {
  description = "The launcher's role, for a member that is added elsewhere; keep its condition."
  value       = google_project_iam_custom_role.launcher.name
}

output "instance_template" {
  description = "Starts a machine like a node by hand, to build or try an image; none without an image."
  value       = one(google_compute_region_instance_template.node[*].self_link)
}

output "vpn_addresses" {
  description = "The cloud's two addresses of the VPN, for your device; none without a VPN."
  value       = flatten([for gateway in google_compute_ha_vpn_gateway.this : gateway.vpn_interfaces[*].ip_address])
}
