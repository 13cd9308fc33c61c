# What a machine of this cluster is made of, for those who start one by hand: to build an image,
# or to look whether one boots. hybrid sends all of it itself and reads no template.

resource "google_compute_region_instance_template" "node" {
  count        = var.image == null ? 0 : 1
  project      = var.project
  region       = var.region
  name_prefix  = "${var.name}-node-"
  description  = "A machine like the nodes of the cluster ${var.name}, started by hand"
  machine_type = var.pools[0].instance_type
  labels       = local.labels

  disk {
    source_image = var.image
    disk_size_gb = var.disk_gib
    disk_type    = var.disk_type
    boot         = true
    auto_delete  = true
    labels       = local.labels
  }

  # No access_config: no public address.
  network_interface {
    subnetwork = local.subnetwork
  }

  service_account {
    email  = local.node_email
    scopes = ["cloud-platform"]
  }

  scheduling {
    provisioning_model          = var.pools[0].use_spot ? "SPOT" : "STANDARD"
    preemptible                 = var.pools[0].use_spot
    automatic_restart           = false
    on_host_maintenance         = "TERMINATE"
    instance_termination_action = var.pools[0].use_spot ? "DELETE" : null
  }

  shielded_instance_config {
    enable_secure_boot          = true
    enable_vtpm                 = true
    enable_integrity_monitoring = true
  }

  metadata = {
    block-project-ssh-keys = "true"
    enable-oslogin         = "TRUE"
  }

  lifecycle {
    create_before_destroy = true
  }
}
