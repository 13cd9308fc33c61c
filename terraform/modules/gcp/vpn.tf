# The way between the nodes and the own machines: HA VPN, two tunnels to one device, BGP.
# The secret is write-only: in neither the plan nor the state.

locals {
  tunnels = var.vpn == null ? {} : {
    a = { interface = 0, ours = "169.254.30.1", theirs = "169.254.30.2" }
    b = { interface = 1, ours = "169.254.30.5", theirs = "169.254.30.6" }
  }
}

resource "google_compute_ha_vpn_gateway" "this" {
  count   = var.vpn == null ? 0 : 1
  project = var.project
  name    = var.name
  region  = var.region
  network = google_compute_network.this[0].id
  labels  = local.labels
}

resource "google_compute_external_vpn_gateway" "on_prem" {
  count           = var.vpn == null ? 0 : 1
  project         = var.project
  name            = "${var.name}-on-prem"
  redundancy_type = "SINGLE_IP_INTERNALLY_REDUNDANT"
  labels          = local.labels

  interface {
    id         = 0
    ip_address = var.vpn.address
  }
}

resource "google_compute_vpn_tunnel" "this" {
  for_each                        = local.tunnels
  project                         = var.project
  name                            = "${var.name}-${each.key}"
  region                          = var.region
  router                          = google_compute_router.this[0].name
  vpn_gateway                     = google_compute_ha_vpn_gateway.this[0].id
  vpn_gateway_interface           = each.value.interface
  peer_external_gateway           = google_compute_external_vpn_gateway.on_prem[0].id
  peer_external_gateway_interface = 0
  ike_version                     = 2
  shared_secret_wo                = var.vpn_secret
  shared_secret_wo_version        = tostring(var.vpn_secret_version)
  labels                          = local.labels
}

resource "google_compute_router_interface" "this" {
  for_each   = local.tunnels
  project    = var.project
  name       = "${var.name}-${each.key}"
  region     = var.region
  router     = google_compute_router.this[0].name
  ip_range   = "${each.value.ours}/30"
  vpn_tunnel = google_compute_vpn_tunnel.this[each.key].name
}

resource "google_compute_router_peer" "this" {
  for_each        = local.tunnels
  project         = var.project
  name            = "${var.name}-${each.key}"
  region          = var.region
  router          = google_compute_router.this[0].name
  interface       = google_compute_router_interface.this[each.key].name
  peer_ip_address = each.value.theirs
  peer_asn        = var.vpn.asn
}
