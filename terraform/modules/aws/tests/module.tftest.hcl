# `terraform test` in this folder: the module's own logic, with no cloud.

mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { region = "eu-central-1" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_iam_roles" {
    defaults = { names = [] }
  }
  mock_resource "aws_subnet" {
    defaults = { arn = "arn:aws:ec2:eu-central-1:123456789012:subnet/subnet-0123456789abcdef0" }
  }
  mock_resource "aws_security_group" {
    defaults = {
      id  = "sg-0123456789abcdef0"
      arn = "arn:aws:ec2:eu-central-1:123456789012:security-group/sg-0123456789abcdef0"
    }
  }
  mock_resource "aws_s3_bucket" {
    defaults = { arn = "arn:aws:s3:::burst-data", bucket = "burst-data" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/burst-node" }
  }
  mock_resource "aws_iam_policy" {
    defaults = { arn = "arn:aws:iam::123456789012:policy/burst" }
  }
}

variables {
  name               = "burst"
  availability_zones = ["eu-central-1a", "eu-central-1b"]
  on_prem_cidrs      = ["192.168.0.0/24", "192.168.8.0/24"]
  pools              = [{ instance_type = "g5.xlarge", use_spot = true }]
}

run "closed" {
  assert {
    condition     = alltrue([for rule in aws_vpc_security_group_ingress_rule.on_prem : contains(var.on_prem_cidrs, rule.cidr_ipv4)])
    error_message = "Only on_prem_cidrs may reach a node."
  }
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.on_prem) == 2
    error_message = "One rule for each of on_prem_cidrs and node_ports."
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.self.cidr_ipv4 == null && aws_vpc_security_group_ingress_rule.self.referenced_security_group_id == aws_security_group.node.id
    error_message = "Nodes talk to nodes, not to addresses."
  }
  assert {
    condition     = length(aws_vpc_security_group_egress_rule.internet) == 1 && aws_vpc_security_group_egress_rule.internet["443"].to_port == 443
    error_message = "To the internet over HTTPS alone."
  }
  assert {
    condition     = alltrue([for subnet in aws_subnet.private : subnet.map_public_ip_on_launch != true])
    error_message = "Nodes have no public address."
  }
  assert {
    condition     = aws_default_security_group.this[0].vpc_id == aws_vpc.this[0].id
    error_message = "The network's default group is closed."
  }
  assert {
    condition     = one(aws_launch_template.node.metadata_options).http_tokens == "required" && one(aws_launch_template.node.metadata_options).http_put_response_hop_limit == 1
    error_message = "IMDSv2, from the machine itself alone."
  }
  assert {
    condition     = one(one(aws_launch_template.node.block_device_mappings).ebs).encrypted == "true"
    error_message = "Volumes are encrypted."
  }
  assert {
    condition = alltrue([
      aws_s3_bucket_public_access_block.this[0].block_public_acls,
      aws_s3_bucket_public_access_block.this[0].block_public_policy,
      aws_s3_bucket_public_access_block.this[0].ignore_public_acls,
      aws_s3_bucket_public_access_block.this[0].restrict_public_buckets,
    ])
    error_message = "The bucket is closed to the public."
  }
  assert {
    condition     = one(jsondecode(aws_s3_bucket_policy.this[0].policy).Statement) == { Sid = "OnlyOverTls", Effect = "Deny", Principal = "*", Action = "s3:*", Resource = ["arn:aws:s3:::burst-data", "arn:aws:s3:::burst-data/*"], Condition = { Bool = { "aws:SecureTransport" = "false" } } }
    error_message = "The bucket speaks TLS only."
  }
  assert {
    condition     = aws_s3_bucket.this[0].force_destroy == false
    error_message = "Destroying must not empty the bucket."
  }
}

run "what_hybrid_reads" {
  assert {
    condition     = output.hybrid_provider.provider == "aws" && keys(output.hybrid_provider.regions) == ["eu-central-1"]
    error_message = "The settings of one account in one region."
  }
  assert {
    condition     = keys(output.hybrid_provider.regions["eu-central-1"].subnets) == var.availability_zones
    error_message = "A private subnet of each zone."
  }
  assert {
    condition     = output.hybrid_provider.regions["eu-central-1"].subnets["eu-central-1a"] == aws_subnet.private["eu-central-1a"].id
    error_message = "The private subnet, not the public one."
  }
  assert {
    condition     = one(output.hybrid_provider.pools).infra == "aws/eu-central-1" && one(output.hybrid_provider.pools).use_spot
    error_message = "A pool of all zones."
  }
  assert {
    condition     = output.checkpoints == "s3://burst-data/checkpoints"
    error_message = "Checkpoints go into the bucket."
  }
}

run "nothing_unasked" {
  command = plan

  assert {
    condition     = length(aws_budgets_budget.this) + length(aws_vpn_connection.this) + length(aws_flow_log.this) + length(aws_iam_service_linked_role.spot) == 0
    error_message = "No budget, VPN, flow log or spot role unless asked for."
  }
}

run "alarm" {
  command = plan

  variables {
    monthly_budget_usd = 500
    budget_emails      = ["ops@example.com"]
  }
  assert {
    condition     = one(aws_budgets_budget.this[0].cost_filter).values == tolist(["user:hybrid-cluster-name$burst"])
    error_message = "The budget counts what carries the cluster's name."
  }
  assert {
    condition     = toset(aws_budgets_budget.this[0].notification[*].threshold) == toset([50, 80, 100])
    error_message = "At 50, 80 and 100 %."
  }
}

run "vpn" {
  command = plan

  variables {
    vpn = { address = "203.0.113.10" }
  }
  assert {
    condition     = toset(keys(aws_vpn_connection_route.on_prem)) == toset(var.on_prem_cidrs) && length(aws_vpn_gateway_route_propagation.private) == 1
    error_message = "All own machines are routed through the tunnel."
  }
}

run "no_way_out" {
  command = plan

  variables {
    nat_gateway = false
  }
  assert {
    condition     = length(aws_internet_gateway.this) + length(aws_subnet.public) + length(aws_nat_gateway.this) + length(aws_eip.nat) == 0
    error_message = "Without a NAT gateway there is nothing public."
  }
}
