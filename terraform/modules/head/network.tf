# The head's address stays when its machine is replaced: nodes and own machines know it by that.

data "aws_region" "this" {}
data "aws_partition" "this" {}
data "aws_caller_identity" "this" {}

locals {
  tags = merge(var.tags, { "hybrid-cluster-name" = var.name, "managed-by" = "terraform" })
}

resource "aws_network_interface" "this" {
  subnet_id       = var.subnet_id
  description     = "Head of the cluster ${var.name}"
  security_groups = [aws_security_group.this.id]
  tags            = merge(local.tags, { Name = "${var.name}-head" })
}

resource "aws_security_group" "this" {
  name        = "${var.name}-head"
  description = "Head of the cluster ${var.name}"
  vpc_id      = var.vpc_id
  tags        = merge(local.tags, { Name = "${var.name}-head" })
}

resource "aws_vpc_security_group_ingress_rule" "nodes" {
  #checkov:skip=CKV_AWS_25:The source is a security group, which the check takes for everybody.
  security_group_id            = aws_security_group.this.id
  description                  = "Nodes"
  ip_protocol                  = "tcp"
  from_port                    = var.head_ports.from
  to_port                      = var.head_ports.to
  referenced_security_group_id = var.node_security_group_id
  tags                         = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "on_prem" {
  for_each          = toset(var.on_prem_cidrs)
  security_group_id = aws_security_group.this.id
  description       = "Own machines and people"
  ip_protocol       = "tcp"
  from_port         = var.head_ports.from
  to_port           = var.head_ports.to
  cidr_ipv4         = each.value
  tags              = local.tags
}

resource "aws_vpc_security_group_egress_rule" "nodes" {
  security_group_id            = aws_security_group.this.id
  description                  = "Nodes"
  ip_protocol                  = "tcp"
  from_port                    = 1024
  to_port                      = 65535
  referenced_security_group_id = var.node_security_group_id
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "on_prem" {
  for_each          = toset(var.on_prem_cidrs)
  security_group_id = aws_security_group.this.id
  description       = "Own machines, by SSH and Ray"
  ip_protocol       = "tcp"
  from_port         = 22
  to_port           = 65535
  cidr_ipv4         = each.value
  tags              = local.tags
}

resource "aws_vpc_security_group_egress_rule" "internet" {
  security_group_id = aws_security_group.this.id
  description       = "AWS's APIs and packages"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  cidr_ipv4         = "0.0.0.0/0"
  tags              = local.tags
}

# The nodes' own group knows nothing of a head in the cloud: two rules more.
resource "aws_vpc_security_group_ingress_rule" "head_to_nodes" {
  #checkov:skip=CKV_AWS_25:The source is a security group, which the check takes for everybody.
  security_group_id            = var.node_security_group_id
  description                  = "Head"
  ip_protocol                  = "tcp"
  from_port                    = 1024
  to_port                      = 65535
  referenced_security_group_id = aws_security_group.this.id
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "nodes_to_head" {
  security_group_id            = var.node_security_group_id
  description                  = "Head"
  ip_protocol                  = "tcp"
  from_port                    = var.head_ports.from
  to_port                      = var.head_ports.to
  referenced_security_group_id = aws_security_group.this.id
  tags                         = local.tags
}
