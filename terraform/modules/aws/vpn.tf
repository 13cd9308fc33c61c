# The way between the nodes and the own machines: static routes, two tunnels.

resource "aws_customer_gateway" "this" {
  count      = var.vpn == null ? 0 : 1
  type       = "ipsec.1"
  ip_address = var.vpn.address
  bgp_asn    = tostring(var.vpn.asn)
  tags       = merge(local.tags, { Name = "${var.name}-on-prem" })
}

resource "aws_vpn_gateway" "this" {
  count  = var.vpn == null ? 0 : 1
  vpc_id = aws_vpc.this[0].id
  tags   = merge(local.tags, { Name = var.name })
}

resource "aws_vpn_connection" "this" {
  count               = var.vpn == null ? 0 : 1
  type                = "ipsec.1"
  customer_gateway_id = aws_customer_gateway.this[0].id
  vpn_gateway_id      = aws_vpn_gateway.this[0].id
  static_routes_only  = true
  tags                = merge(local.tags, { Name = "${var.name}-on-prem" })
}

resource "aws_vpn_connection_route" "on_prem" {
  for_each               = var.vpn == null ? [] : toset(var.on_prem_cidrs)
  vpn_connection_id      = aws_vpn_connection.this[0].id
  destination_cidr_block = each.value
}

resource "aws_vpn_gateway_route_propagation" "private" {
  count          = var.vpn == null ? 0 : 1
  vpn_gateway_id = aws_vpn_gateway.this[0].id
  route_table_id = aws_route_table.private[0].id
}
