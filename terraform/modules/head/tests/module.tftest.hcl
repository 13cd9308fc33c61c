# Run with `terraform test`: no account is needed, the provider is Terraform's own mock.

mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { region = "us-east-1" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
}

variables {
  name                   = "burst"
  config                 = "name: burst"
  image                  = "ami-0123456789abcdef0"
  vpc_id                 = "vpc-0123456789abcdef0"
  subnet_id              = "subnet-0123456789abcdef0"
  availability_zone      = "us-east-1a"
  node_security_group_id = "sg-0123456789abcdef0"
  launcher_policy_arn    = "arn:aws:iam::123456789012:policy/burst-launcher"
}

run "closed" {
  command = plan

  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.on_prem) == 0
    error_message = "Without own machines only nodes reach the head."
  }
  assert {
    condition     = aws_instance.this.metadata_options[0].http_tokens == "required" && aws_instance.this.disable_api_termination
    error_message = "IMDSv2, and nobody ends the head by accident."
  }
}

run "one_name" {
  command = plan

  variables {
    config = "name: other"
  }

  expect_failures = [var.config]
}

run "no_secret_in_the_open" {
  command = plan

  variables {
    ledger_parameter = "postgresql://hybrid:secret@db/hybrid"
    on_prem_cidrs    = ["0.0.0.0/0"]
  }

  expect_failures = [var.ledger_parameter, var.on_prem_cidrs]
}
