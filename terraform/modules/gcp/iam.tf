# Two identities: the launcher, which hybrid runs as, and the nodes'. The launcher's role is what
# the adapter calls and nothing more; docs/fidelity/gcp.md lists it, and a test compares the two.

locals {
  # Google makes the address of these two; written so, a plan shows it.
  node_email = "${google_service_account.node.account_id}@${var.project}.iam.gserviceaccount.com"
  node       = "serviceAccount:${local.node_email}"

  # Every instance that hybrid makes is called hybrid-...; what is no instance has no such name.
  own_instances = "resource.type == \"compute.googleapis.com/Instance\" && resource.name.extract(\"/instances/{name}\").startsWith(\"hybrid-\")"
  own_or_other  = "resource.type != \"compute.googleapis.com/Instance\" || resource.name.extract(\"/instances/{name}\").startsWith(\"hybrid-\")"
}

resource "google_service_account" "node" {
  project      = var.project
  account_id   = "${var.name}-node"
  display_name = "Nodes of the cluster ${var.name}"

  depends_on = [google_project_service.this]
}

resource "google_project_iam_custom_role" "launcher" {
  project     = var.project
  role_id     = "${replace(var.name, "-", "_")}_launcher"
  title       = "hybrid launcher of ${var.name}"
  description = "Launches, extends and ends instances: exactly the calls of hybrid"
  permissions = [
    "compute.disks.create",
    "compute.disks.setLabels",
    "compute.images.useReadOnly",
    "compute.instances.create",
    "compute.instances.delete",
    "compute.instances.get",
    "compute.instances.list",
    "compute.instances.setLabels",
    "compute.instances.setMetadata",
    "compute.instances.setServiceAccount",
    "compute.subnetworks.use",
    "compute.zoneOperations.get",
  ]
}

resource "google_project_iam_member" "launcher" {
  for_each = { for index, member in var.launcher_members : index => member }
  project  = var.project
  role     = google_project_iam_custom_role.launcher.name
  member   = each.value

  condition {
    title       = "only-instances-of-hybrid"
    description = "Instances that hybrid named; disks, images and the subnetwork have no such names"
    expression  = local.own_or_other
  }
}

# To hand this one account to an instance; no other account of the project.
resource "google_service_account_iam_member" "launcher" {
  for_each           = { for index, member in var.launcher_members : index => member }
  service_account_id = google_service_account.node.name
  role               = "roles/iam.serviceAccountUser"
  member             = each.value
}

resource "google_project_iam_custom_role" "node" {
  count       = var.nodes_delete_themselves ? 1 : 0
  project     = var.project
  role_id     = "${replace(var.name, "-", "_")}_node"
  title       = "hybrid node of ${var.name}"
  description = "A node whose lease is over deletes itself"
  permissions = ["compute.instances.delete"]
}

resource "google_project_iam_member" "node" {
  count   = var.nodes_delete_themselves ? 1 : 0
  project = var.project
  role    = google_project_iam_custom_role.node[0].name
  member  = local.node

  condition {
    title       = "only-instances-of-hybrid"
    description = "Instances that hybrid named, and nothing else"
    expression  = local.own_instances
  }
}

resource "google_storage_bucket_iam_member" "node" {
  bucket = local.bucket
  role   = "roles/storage.objectUser"
  member = local.node
}
