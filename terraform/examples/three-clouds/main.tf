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

provider "google" {
  project = var.gcp_project
  region  = var.gcp_region
}

module "gcp" {
  source = "../../modules/gcp" # in your repository: git::https://...//terraform/modules/gcp?ref=v0.1.0

  name             = var.name
  project          = var.gcp_project
  region           = var.gcp_region
  cidr_block       = "10.72.0.0/16"
  on_prem_cidrs    = var.on_prem_cidrs
  image            = var.gcp_image
  launcher_members = var.gcp_launcher_members
  pools            = var.gcp_pools
  tags             = var.tags
}

provider "baiducloud" {
  region = var.baidu_region # keys: BAIDUCLOUD_ACCESS_KEY and BAIDUCLOUD_SECRET_KEY
}

module "baidu" {
  source = "../../modules/baidu" # in your repository: git::https://...//terraform/modules/baidu?ref=v0.1.0

  name          = var.name
  region        = var.baidu_region
  zones         = var.baidu_zones
  cidr_block    = "10.80.0.0/16"
  on_prem_cidrs = var.on_prem_cidrs
  image         = var.baidu_image
  exchange      = var.exchange
  pools         = var.baidu_pools
  tags          = var.tags
}
