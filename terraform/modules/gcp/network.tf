# The network: one subnetwork without public addresses, one way out, no way in but from the own
# machines. Rules go by the nodes' account, not by network tags, which an instance's owner can set.

locals {
  labels = merge(var.tags, { "hybrid-cluster-name" = var.name, "managed-by" = "terraform" })
  apis = var.enable_apis ? toset(concat(
    ["compute.googleapis.com", "iam.googleapis.com", "storage.googleapis.com"],
    var.iap_ssh ? ["iap.googleapis.com"] : [],
    var.monthly_budget_usd == null ? [] : ["billingbudgets.googleapis.com"],
  )) : toset([])

  network    = var.create_network ? google_compute_network.this[0].id : data.google_compute_subnetwork.given[0].network
  node_cidr  = var.create_network ? var.cidr_block : data.google_compute_subnetwork.given[0].ip_cidr_range
  subnetwork = var.create_network ? "projects/${var.project}/regions/${var.region}/subnetworks/${google_compute_subnetwork.this[0].name}" : var.subnetwork

  # The rules of a shared network belong to its own project.
  has_rules = var.create_network || startswith(coalesce(var.subnetwork, "-"), "projects/${var.project}/")
}

resource "google_project_service" "this" {
  for_each           = local.apis
  project            = var.project
  service            = each.key
  disable_on_destroy = false # others in the project may need them
}

data "google_compute_subnetwork" "given" {
  count   = var.create_network ? 0 : 1
  project = split("/", var.subnetwork)[1]
  region  = var.region
  name    = split("/", var.subnetwork)[5]

  lifecycle {
    postcondition {
      condition = alltrue([
        for cidr in var.on_prem_cidrs :
        cidrhost("${split("/", cidr)[0]}/${min(split("/", cidr)[1], split("/", self.ip_cidr_range)[1])}", 0)
        != cidrhost("${split("/", self.ip_cidr_range)[0]}/${min(split("/", cidr)[1], split("/", self.ip_cidr_range)[1])}", 0)
      ])
      error_message = "on_prem_cidrs and ${self.ip_cidr_range}, the addresses of ${self.name}, must not overlap: nothing could be routed between them."
    }
    postcondition {
      condition     = self.private_ip_google_access
      error_message = "subnetwork: ${self.name} has no Private Google Access, without which nodes that have no public address reach neither the bucket nor the API that deletes them."
    }
  }
}

resource "google_compute_network" "this" {
  count                           = var.create_network ? 1 : 0
  project                         = var.project
  name                            = var.name
  auto_create_subnetworks         = false
  routing_mode                    = "REGIONAL"
  delete_default_routes_on_create = false # Private Google Access and Cloud NAT go through it

  depends_on = [google_project_service.this]
}

resource "google_compute_subnetwork" "this" {
  #checkov:skip=CKV_GCP_76:The subnetwork has no IPv6 addresses.
  count                    = var.create_network ? 1 : 0
  project                  = var.project
  name                     = "${var.name}-nodes"
  region                   = var.region
  network                  = google_compute_network.this[0].id
  ip_cidr_range            = var.cidr_block
  stack_type               = "IPV4_ONLY"
  private_ip_google_access = true

  log_config {
    aggregation_interval = "INTERVAL_10_MIN"
    flow_sampling        = 0.1
    metadata             = "INCLUDE_ALL_METADATA"
  }
}

# Of the NAT gateway and of the VPN.
resource "google_compute_router" "this" {
  count   = var.create_network && (var.nat_gateway || var.vpn != null) ? 1 : 0
  project = var.project
  name    = var.name
  region  = var.region
  network = google_compute_network.this[0].id

  bgp {
    asn            = var.cloud_asn
    advertise_mode = "DEFAULT"
  }
}

resource "google_compute_router_nat" "this" {
  count                              = var.create_network && var.nat_gateway ? 1 : 0
  project                            = var.project
  name                               = var.name
  region                             = var.region
  router                             = google_compute_router.this[0].name
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "LIST_OF_SUBNETWORKS"

  subnetwork {
    name                    = google_compute_subnetwork.this[0].id
    source_ip_ranges_to_nat = ["ALL_IP_RANGES"]
  }

  log_config {
    enable = true
    filter = "ERRORS_ONLY"
  }
}

# --- who may talk to a node -------------------------------------------------------------------

resource "google_compute_firewall" "self" {
  count                   = local.has_rules ? 1 : 0
  project                 = var.project
  name                    = "${var.name}-self"
  description             = "Nodes among themselves"
  network                 = local.network
  direction               = "INGRESS"
  source_service_accounts = [local.node_email]
  target_service_accounts = [local.node_email]

  allow {
    protocol = "all"
  }
}

resource "google_compute_firewall" "on_prem" {
  count                   = local.has_rules && length(var.on_prem_cidrs) > 0 && length(var.node_ports) > 0 ? 1 : 0
  project                 = var.project
  name                    = "${var.name}-on-prem"
  description             = "Head and own machines"
  network                 = local.network
  direction               = "INGRESS"
  source_ranges           = var.on_prem_cidrs
  target_service_accounts = [local.node_email]

  allow {
    protocol = "tcp"
    ports    = [for range in var.node_ports : range.from == range.to ? tostring(range.from) : "${range.from}-${range.to}"]
  }
}

resource "google_compute_firewall" "iap" {
  count                   = local.has_rules && var.iap_ssh ? 1 : 0
  project                 = var.project
  name                    = "${var.name}-iap"
  description             = "SSH through Identity-Aware Proxy, whose addresses these are"
  network                 = local.network
  direction               = "INGRESS"
  source_ranges           = ["35.235.240.0/20"]
  target_service_accounts = [local.node_email]

  allow {
    protocol = "tcp"
    ports    = ["22"]
  }

  log_config {
    metadata = "INCLUDE_ALL_METADATA"
  }
}

# Google lets everything out unless a rule says no.
resource "google_compute_firewall" "egress_closed" {
  count                   = local.has_rules ? 1 : 0
  project                 = var.project
  name                    = "${var.name}-egress-closed"
  description             = "Nothing leaves a node but by the rules below"
  network                 = local.network
  direction               = "EGRESS"
  priority                = 65000
  destination_ranges      = ["0.0.0.0/0"]
  target_service_accounts = [local.node_email]

  deny {
    protocol = "all"
  }
}

resource "google_compute_firewall" "egress_own" {
  count                   = local.has_rules ? 1 : 0
  project                 = var.project
  name                    = "${var.name}-egress-own"
  description             = "Nodes, head and own machines"
  network                 = local.network
  direction               = "EGRESS"
  destination_ranges      = concat([local.node_cidr], var.on_prem_cidrs)
  target_service_accounts = [local.node_email]

  allow {
    protocol = "all"
  }
}

resource "google_compute_firewall" "egress_internet" {
  count                   = local.has_rules ? 1 : 0
  project                 = var.project
  name                    = "${var.name}-egress-internet"
  description             = "Packages, images, object storage, Google's APIs"
  network                 = local.network
  direction               = "EGRESS"
  destination_ranges      = ["0.0.0.0/0"]
  target_service_accounts = [local.node_email]

  allow {
    protocol = "tcp"
    ports    = [for port in var.egress_ports : tostring(port)]
  }
}
