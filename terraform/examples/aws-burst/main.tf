provider "aws" {
  region = var.aws_region

  default_tags {
    tags = var.tags
  }
}

module "aws" {
  source = "../../modules/aws" # in your repository: git::https://...//terraform/modules/aws?ref=v0.1.0

  name               = var.name
  availability_zones = var.aws_zones
  cidr_block         = "10.64.0.0/16"
  on_prem_cidrs      = var.on_prem_cidrs
  image              = var.aws_image
  pools              = var.aws_pools
  tags               = var.tags
}
