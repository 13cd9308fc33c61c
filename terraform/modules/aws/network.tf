# The network: private subnets for the nodes, one way out, no way in but from the own machines.

data "aws_region" "this" {}

data "aws_vpc" "given" {
  count = var.create_vpc ? 0 : 1
  id    = var.vpc_id

  lifecycle {
    postcondition {
      condition = alltrue([
        for cidr in var.on_prem_cidrs :
        cidrhost("${split("/", cidr)[0]}/${min(split("/", cidr)[1], split("/", self.cidr_block)[1])}", 0)
        != cidrhost("${split("/", self.cidr_block)[0]}/${min(split("/", cidr)[1], split("/", self.cidr_block)[1])}", 0)
      ])
      error_message = "on_prem_cidrs and ${self.cidr_block}, the addresses of ${var.vpc_id}, must not overlap: nothing could be routed between them."
    }
  }
}

data "aws_subnet" "given" {
  for_each = var.subnet_ids
  id       = each.value

  lifecycle {
    postcondition {
      condition     = self.vpc_id == var.vpc_id
      error_message = "subnet_ids: ${each.value} is a subnet of ${self.vpc_id}, not of ${var.vpc_id}."
    }
    postcondition {
      condition     = self.availability_zone == each.key
      error_message = "subnet_ids: ${each.value} is in ${self.availability_zone}, not in ${each.key}."
    }
    postcondition {
      condition     = !self.map_public_ip_on_launch
      error_message = "subnet_ids: ${each.value} gives its machines public addresses; nodes belong in a private subnet."
    }
  }
}

locals {
  region       = data.aws_region.this.region
  tags         = merge(var.tags, { "hybrid-cluster-name" = var.name, "managed-by" = "terraform" })
  zones        = { for index, zone in var.availability_zones : zone => index }
  vpc_id       = var.create_vpc ? aws_vpc.this[0].id : var.vpc_id
  subnet_zones = var.create_vpc ? { for zone in var.availability_zones : zone => zone } : var.subnet_ids
  subnets      = var.create_vpc ? { for zone, subnet in aws_subnet.private : zone => subnet.id } : var.subnet_ids
  subnet_arns  = var.create_vpc ? [for subnet in aws_subnet.private : subnet.arn] : [for subnet in data.aws_subnet.given : subnet.arn]
  has_nat      = var.create_vpc && var.nat_gateway
}

resource "aws_vpc" "this" {
  count                = var.create_vpc ? 1 : 0
  cidr_block           = var.cidr_block
  enable_dns_hostnames = true
  enable_dns_support   = true
  tags                 = merge(local.tags, { Name = var.name })
}

# Taken over without a rule, so that what names no group can neither talk nor be talked to.
resource "aws_default_security_group" "this" {
  count  = var.create_vpc ? 1 : 0
  vpc_id = aws_vpc.this[0].id
  tags   = merge(local.tags, { Name = "${var.name}-default-closed" })
}

resource "aws_subnet" "private" {
  for_each          = var.create_vpc ? local.zones : {}
  vpc_id            = aws_vpc.this[0].id
  availability_zone = each.key
  cidr_block        = cidrsubnet(var.cidr_block, 4, each.value + 1)
  tags              = merge(local.tags, { Name = "${var.name}-private-${each.key}" })
}

# Inside the sixteenth that no private subnet has. Only the NAT gateway is in one.
resource "aws_subnet" "public" {
  for_each          = local.has_nat ? local.zones : {}
  vpc_id            = aws_vpc.this[0].id
  availability_zone = each.key
  cidr_block        = cidrsubnet(var.cidr_block, 8, each.value)
  tags              = merge(local.tags, { Name = "${var.name}-public-${each.key}" })
}

resource "aws_internet_gateway" "this" {
  count  = local.has_nat ? 1 : 0
  vpc_id = aws_vpc.this[0].id
  tags   = merge(local.tags, { Name = var.name })
}

resource "aws_eip" "nat" {
  #checkov:skip=CKV2_AWS_19:It is the NAT gateway's, which checkov takes for nobody's.
  count  = local.has_nat ? 1 : 0
  domain = "vpc"
  tags   = merge(local.tags, { Name = "${var.name}-nat" })
}

resource "aws_nat_gateway" "this" {
  count         = local.has_nat ? 1 : 0
  allocation_id = aws_eip.nat[0].id
  subnet_id     = aws_subnet.public[var.availability_zones[0]].id
  tags          = merge(local.tags, { Name = var.name })

  depends_on = [aws_internet_gateway.this]
}

resource "aws_route_table" "public" {
  count  = local.has_nat ? 1 : 0
  vpc_id = aws_vpc.this[0].id
  tags   = merge(local.tags, { Name = "${var.name}-public" })
}

resource "aws_route" "public_internet" {
  count                  = local.has_nat ? 1 : 0
  route_table_id         = aws_route_table.public[0].id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.this[0].id
}

resource "aws_route_table_association" "public" {
  for_each       = aws_subnet.public
  subnet_id      = each.value.id
  route_table_id = aws_route_table.public[0].id
}

resource "aws_route_table" "private" {
  count  = var.create_vpc ? 1 : 0
  vpc_id = aws_vpc.this[0].id
  tags   = merge(local.tags, { Name = "${var.name}-private" })
}

resource "aws_route" "private_nat" {
  count                  = local.has_nat ? 1 : 0
  route_table_id         = aws_route_table.private[0].id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.this[0].id
}

resource "aws_route_table_association" "private" {
  for_each       = aws_subnet.private
  subnet_id      = each.value.id
  route_table_id = aws_route_table.private[0].id
}

# Checkpoints go to S3 without passing the NAT gateway, which costs by the byte.
resource "aws_vpc_endpoint" "s3" {
  count             = var.create_vpc ? 1 : 0
  vpc_id            = aws_vpc.this[0].id
  service_name      = "com.amazonaws.${local.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [aws_route_table.private[0].id]
  tags              = merge(local.tags, { Name = "${var.name}-s3" })
}

# --- who may talk to a node -------------------------------------------------------------------

resource "aws_security_group" "node" {
  #checkov:skip=CKV2_AWS_5:Instances that hybrid rents carry it; Terraform makes none.
  name        = "${var.name}-node"
  description = "Nodes of the cluster ${var.name}"
  vpc_id      = local.vpc_id
  tags        = merge(local.tags, { Name = "${var.name}-node" })
}

resource "aws_vpc_security_group_ingress_rule" "self" {
  security_group_id            = aws_security_group.node.id
  description                  = "Nodes among themselves"
  ip_protocol                  = "-1"
  referenced_security_group_id = aws_security_group.node.id
  tags                         = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "on_prem" {
  for_each = {
    for pair in setproduct(var.on_prem_cidrs, var.node_ports) :
    "${pair[0]}-${pair[1].from}-${pair[1].to}" => { cidr = pair[0], from = pair[1].from, to = pair[1].to }
  }
  security_group_id = aws_security_group.node.id
  description       = "Head and own machines"
  ip_protocol       = "tcp"
  from_port         = each.value.from
  to_port           = each.value.to
  cidr_ipv4         = each.value.cidr
  tags              = local.tags
}

resource "aws_vpc_security_group_egress_rule" "self" {
  security_group_id            = aws_security_group.node.id
  description                  = "Nodes among themselves"
  ip_protocol                  = "-1"
  referenced_security_group_id = aws_security_group.node.id
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "on_prem" {
  for_each          = toset(var.on_prem_cidrs)
  security_group_id = aws_security_group.node.id
  description       = "Head and own machines"
  ip_protocol       = "-1"
  cidr_ipv4         = each.value
  tags              = local.tags
}

resource "aws_vpc_security_group_egress_rule" "internet" {
  for_each          = toset([for port in var.egress_ports : tostring(port)])
  security_group_id = aws_security_group.node.id
  description       = "Packages, images, object storage"
  ip_protocol       = "tcp"
  from_port         = tonumber(each.value)
  to_port           = tonumber(each.value)
  cidr_ipv4         = "0.0.0.0/0"
  tags              = local.tags
}

# --- log of connections -----------------------------------------------------------------------

resource "aws_cloudwatch_log_group" "flow" {
  #checkov:skip=CKV_AWS_158:Encrypted with CloudWatch's own key; addresses and byte counts, no content.
  #checkov:skip=CKV_AWS_338:How long a team keeps it is its own decision: flow_log_days.
  count             = var.flow_log_days == null ? 0 : 1
  name              = "/hybrid/${var.name}/flow"
  retention_in_days = var.flow_log_days
  tags              = local.tags
}

resource "aws_iam_role" "flow" {
  count = var.flow_log_days == null ? 0 : 1
  name  = "${var.name}-flow-log"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "vpc-flow-logs.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
  tags = local.tags
}

resource "aws_iam_role_policy" "flow" {
  count = var.flow_log_days == null ? 0 : 1
  name  = "write"
  role  = aws_iam_role.flow[0].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"]
      Resource = "${aws_cloudwatch_log_group.flow[0].arn}:*"
    }]
  })
}

resource "aws_flow_log" "this" {
  count                = var.flow_log_days == null ? 0 : 1
  vpc_id               = aws_vpc.this[0].id
  traffic_type         = "ALL"
  log_destination_type = "cloud-watch-logs"
  log_destination      = aws_cloudwatch_log_group.flow[0].arn
  iam_role_arn         = aws_iam_role.flow[0].arn
  tags                 = local.tags
}
