# Run with `terraform test`: no account is needed, the provider is Terraform's own mock.

mock_provider "baiducloud" {}

variables {
  name   = "burst"
  region = "bj"
  zones  = ["cn-bj-d"]
  pools  = [{ instance_type = "bcc.lgn1.c12m40.1p40", zone = "cn-bj-d", usd_per_hour = 1.6 }]
}

run "small" {
  command = plan

  assert {
    condition     = length(baiducloud_security_group_rule.ingress_on_prem) == 0
    error_message = "Without own machines nobody but the nodes reaches a node."
  }
  assert {
    condition     = length(baiducloud_iam_access_key.launcher) == 0 && length(baiducloud_vpn_gateway.this) == 0 && length(baiducloud_bcc_key_pair.this) == 0
    error_message = "A key and a VPN are made when they are asked for."
  }
}

run "own_network_and_bucket" {
  command = plan

  variables {
    create_vpc    = false
    zones         = []
    vpc_id        = "vpc-abcdefghijkl"
    subnet_ids    = { cn-bj-d = "sbn-abcdefghijkl" }
    create_bucket = false
    bucket        = "my-data"
  }

  assert {
    condition     = length(baiducloud_vpc.this) == 0 && length(baiducloud_bos_bucket.this) == 0 && length(baiducloud_nat_gateway.this) == 0
    error_message = "What is there is not made again."
  }
  assert {
    condition     = output.hybrid_provider.pools[0].subnet == "sbn-abcdefghijkl" && baiducloud_security_group.node.vpc_id == "vpc-abcdefghijkl"
    error_message = "Nodes are in the network that was given."
  }
}

run "no_open_network" {
  command = plan

  variables {
    on_prem_cidrs = ["0.0.0.0/0"]
  }

  expect_failures = [var.on_prem_cidrs]
}
