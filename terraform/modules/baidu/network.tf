# The network: a subnet for each zone, one way out, no way in but from the own machines. Nodes get
# no public addresses: hybrid asks for none, and Baidu's subnets give none by themselves.

locals {
  tags         = merge(var.tags, { "hybrid-cluster-name" = var.name, "managed-by" = "terraform" })
  zones        = { for index, zone in var.zones : zone => index }
  vpc_id       = var.create_vpc ? baiducloud_vpc.this[0].id : var.vpc_id
  subnet_zones = var.create_vpc ? { for zone in var.zones : zone => zone } : var.subnet_ids
  subnets      = var.create_vpc ? { for zone, subnet in baiducloud_subnet.this : zone => subnet.id } : var.subnet_ids
  has_nat      = var.create_vpc && var.nat_gateway
}

resource "baiducloud_vpc" "this" {
  count       = var.create_vpc ? 1 : 0
  name        = var.name
  description = "Nodes of the cluster ${var.name}"
  cidr        = var.cidr_block
  tags        = local.tags
}

resource "baiducloud_subnet" "this" {
  for_each    = var.create_vpc ? local.zones : {}
  name        = "${var.name}-${each.key}"
  description = "Nodes of the cluster ${var.name}"
  zone_name   = each.key
  cidr        = cidrsubnet(var.cidr_block, 4, each.value + 1)
  vpc_id      = baiducloud_vpc.this[0].id
  subnet_type = "BCC"
  tags        = local.tags
}

resource "baiducloud_eip" "nat" {
  count             = local.has_nat ? 1 : 0
  name              = "${var.name}-nat"
  bandwidth_in_mbps = var.nat_bandwidth_mbps
  payment_timing    = "Postpaid"
  billing_method    = "ByTraffic"
  tags              = local.tags
}

resource "baiducloud_nat_gateway" "this" {
  count   = local.has_nat ? 1 : 0
  name    = var.name
  vpc_id  = baiducloud_vpc.this[0].id
  spec    = "small"
  billing = { payment_timing = "Postpaid" }
}

resource "baiducloud_eip_association" "nat" {
  count         = local.has_nat ? 1 : 0
  eip           = baiducloud_eip.nat[0].id
  instance_type = "NAT"
  instance_id   = baiducloud_nat_gateway.this[0].id
}

resource "baiducloud_route_rule" "nat" {
  for_each            = local.has_nat ? baiducloud_subnet.this : {}
  route_table_id      = baiducloud_vpc.this[0].route_table_id
  source_address      = each.value.cidr
  destination_address = "0.0.0.0/0"
  next_hop_id         = baiducloud_nat_gateway.this[0].id
  next_hop_type       = "nat"
  description         = "To the internet through the NAT gateway"

  depends_on = [baiducloud_eip_association.nat]
}

# --- who may talk to a node -------------------------------------------------------------------

resource "baiducloud_security_group" "node" {
  name        = "${var.name}-node"
  description = "Nodes of the cluster ${var.name}"
  vpc_id      = local.vpc_id
  tags        = local.tags
}

resource "baiducloud_security_group_rule" "ingress_self" {
  security_group_id = baiducloud_security_group.node.id
  remark            = "Nodes among themselves"
  direction         = "ingress"
  ether_type        = "IPv4"
  protocol          = "all"
  port_range        = "1-65535"
  source_group_id   = baiducloud_security_group.node.id
}

resource "baiducloud_security_group_rule" "ingress_on_prem" {
  for_each = {
    for pair in setproduct(var.on_prem_cidrs, var.node_ports) :
    "${pair[0]}-${pair[1].from}-${pair[1].to}" => { cidr = pair[0], from = pair[1].from, to = pair[1].to }
  }
  security_group_id = baiducloud_security_group.node.id
  remark            = "Head and own machines"
  direction         = "ingress"
  ether_type        = "IPv4"
  protocol          = "tcp"
  port_range        = each.value.from == each.value.to ? tostring(each.value.from) : "${each.value.from}-${each.value.to}"
  source_ip         = each.value.cidr
}

resource "baiducloud_security_group_rule" "egress_self" {
  security_group_id = baiducloud_security_group.node.id
  remark            = "Nodes among themselves"
  direction         = "egress"
  ether_type        = "IPv4"
  protocol          = "all"
  port_range        = "1-65535"
  dest_group_id     = baiducloud_security_group.node.id
}

resource "baiducloud_security_group_rule" "egress_on_prem" {
  for_each          = toset(var.on_prem_cidrs)
  security_group_id = baiducloud_security_group.node.id
  remark            = "Head and own machines"
  direction         = "egress"
  ether_type        = "IPv4"
  protocol          = "all"
  port_range        = "1-65535"
  dest_ip           = each.value
}

resource "baiducloud_security_group_rule" "egress_internet" {
  for_each          = toset([for port in var.egress_ports : tostring(port)])
  security_group_id = baiducloud_security_group.node.id
  remark            = "Packages, images, object storage"
  direction         = "egress"
  ether_type        = "IPv4"
  protocol          = "tcp"
  port_range        = each.value
  dest_ip           = "all"
}
