# Run with `terraform test`: no account is needed, the provider is Terraform's own mock.

mock_provider "google" {}

variables {
  name             = "burst"
  project          = "my-project"
  region           = "us-central1"
  pools            = [{ instance_type = "g2-standard-8", zone = "us-central1-a" }]
  launcher_members = ["serviceAccount:head@my-project.iam.gserviceaccount.com"]
}

run "small" {
  command = plan

  assert {
    condition     = length(google_compute_firewall.on_prem) == 0 && length(google_compute_firewall.iap) == 0
    error_message = "Without own machines nobody but the nodes reaches a node."
  }
  assert {
    condition     = length(google_billing_budget.this) == 0 && length(google_compute_ha_vpn_gateway.this) == 0
    error_message = "A budget and a VPN are made when they are asked for."
  }
  assert {
    condition     = output.hybrid_provider.pools[0].infra == "gcp/us-central1/us-central1-a" && !output.hybrid_provider.external_ip
    error_message = "hybrid rents in the pools' zones, without public addresses."
  }
}

run "own_network_and_bucket" {
  command = plan

  override_data {
    target = data.google_compute_subnetwork.given[0]
    values = {
      network                  = "projects/shared/global/networks/all"
      ip_cidr_range            = "10.1.0.0/20"
      private_ip_google_access = true
    }
  }
  variables {
    create_network          = false
    subnetwork              = "projects/shared/regions/us-central1/subnetworks/nodes"
    create_bucket           = false
    bucket                  = "my-data"
    nodes_delete_themselves = false
  }

  assert {
    condition     = length(google_compute_network.this) == 0 && length(google_storage_bucket.this) == 0 && length(google_compute_router_nat.this) == 0
    error_message = "What is there is not made again."
  }
  assert {
    condition     = length(google_compute_firewall.self) == 0
    error_message = "The rules of another project's network are not ours."
  }
  assert {
    condition     = google_storage_bucket_iam_member.node.bucket == "my-data" && length(google_project_iam_member.node) == 0
    error_message = "The nodes' account has the one bucket and nothing more."
  }
}

run "no_open_network" {
  command = plan

  variables {
    on_prem_cidrs    = ["0.0.0.0/0"]
    launcher_members = ["allUsers"]
  }

  expect_failures = [var.on_prem_cidrs, var.launcher_members]
}
