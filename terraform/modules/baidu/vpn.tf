# The way between the nodes and the own machines: one IPsec tunnel.

resource "baiducloud_vpn_gateway" "this" {
  count          = var.vpn == null ? 0 : 1
  vpn_name       = var.name
  vpc_id         = baiducloud_vpc.this[0].id
  description    = "To the own machines of ${var.name}"
  payment_timing = "Postpaid"
}

resource "baiducloud_vpn_conn" "on_prem" {
  count          = var.vpn == null ? 0 : 1
  vpn_id         = baiducloud_vpn_gateway.this[0].id
  vpn_conn_name  = "${var.name}-on-prem"
  secret_key     = var.vpn_secret
  local_subnets  = [for zone in var.zones : baiducloud_subnet.this[zone].cidr]
  remote_ip      = var.vpn.address
  remote_subnets = var.on_prem_cidrs

  ike_config {
    ike_version   = "v2"
    ike_mode      = "main"
    ike_enc_alg   = "aes256"
    ike_auth_alg  = "sha2_256"
    ike_pfs       = "group14"
    ike_life_time = 28800
  }

  ipsec_config {
    ipsec_enc_alg   = "aes256"
    ipsec_auth_alg  = "sha2_256"
    ipsec_pfs       = "group14"
    ipsec_life_time = 28800
  }
}

resource "baiducloud_route_rule" "vpn" {
  for_each = {
    for pair in setproduct(var.vpn == null ? [] : var.zones, var.on_prem_cidrs) : "${pair[0]}-${pair[1]}" => { zone = pair[0], cidr = pair[1] }
  }
  route_table_id      = baiducloud_vpc.this[0].route_table_id
  source_address      = baiducloud_subnet.this[each.value.zone].cidr
  destination_address = each.value.cidr
  next_hop_id         = baiducloud_vpn_gateway.this[0].id
  next_hop_type       = "vpn"
  description         = "To the own machines through the VPN"

  depends_on = [baiducloud_vpn_conn.on_prem]
}
